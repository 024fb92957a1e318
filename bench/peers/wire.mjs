// OpenAI Chat messages in the shapes of other packages, and back.
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';

const textOf = (content) =>
  Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : (content ?? '');

function decoded(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : { value };
  } catch {
    return { text };
  }
}

/** The names of the tools that calls before a result name, by call id. */
function toolNames(messages) {
  const names = new Map();
  for (const { tool_calls: calls = [] } of messages) {
    for (const call of calls) names.set(call.id, call.function.name);
  }
  return (id) => names.get(id) ?? 'tool';
}

// ---- LangChain ---------------------------------------------------------------

export function toLangChain(messages) {
  return messages.map((message) => {
    const content = textOf(message.content);
    if (message.role === 'user') return new HumanMessage({ content });
    if (message.role === 'tool') {
      return new ToolMessage({ content, tool_call_id: message.tool_call_id });
    }
    if (message.role !== 'assistant') return new SystemMessage({ content });
    const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: args } }) => ({
      id,
      name,
      args: decoded(args),
      type: 'tool_call',
    }));
    // What the message was, to send it again byte for byte where it is not changed.
    return new AIMessage({ content, tool_calls: calls, additional_kwargs: { wire: message } });
  });
}

export function fromLangChain(messages) {
  return messages.filter(Boolean).map((message) => {
    const { content } = message;
    switch (message.getType()) {
      case 'human':
        return { role: 'user', content };
      case 'system':
        return { role: 'system', content };
      case 'tool':
        return { role: 'tool', tool_call_id: message.tool_call_id, content };
      default:
        return message.additional_kwargs.wire ?? { role: 'assistant', content };
    }
  });
}

// ---- AI SDK and Mastra -------------------------------------------------------

export function toAiSdk(messages) {
  const nameOf = toolNames(messages);
  return messages.map((message) => {
    const text = textOf(message.content);
    if (message.role === 'user') return { role: 'user', content: [{ type: 'text', text }] };
    if (message.role === 'tool') {
      const toolCallId = message.tool_call_id;
      const output = { type: 'text', value: text };
      const toolName = nameOf(toolCallId);
      return { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] };
    }
    if (message.role !== 'assistant') return { role: 'system', content: text };
    const content = [];
    if (message.reasoning_content) {
      content.push({ type: 'reasoning', text: message.reasoning_content });
    }
    if (text !== '') content.push({ type: 'text', text });
    for (const { id, function: call } of message.tool_calls ?? []) {
      const input = decoded(call.arguments);
      const wire = call.arguments;
      content.push({ type: 'tool-call', toolCallId: id, toolName: call.name, input, wire });
    }
    return { role: 'assistant', content };
  });
}

export function fromAiSdk(messages) {
  return messages.flatMap((message) => {
    if (typeof message.content === 'string') {
      return [{ role: message.role, content: message.content }];
    }
    if (message.role === 'tool') {
      return message.content.map(({ toolCallId, output }) => {
        return { role: 'tool', tool_call_id: toolCallId, content: output.value };
      });
    }
    const of = (type) => message.content.filter((part) => part.type === type);
    const content = of('text')
      .map((part) => part.text)
      .join('');
    if (message.role === 'user') return [{ role: 'user', content }];
    const reasoning = of('reasoning')
      .map((part) => part.text)
      .join('');
    const calls = of('tool-call').map(({ toolCallId, toolName, input, wire }) => ({
      id: toolCallId,
      type: 'function',
      function: { name: toolName, arguments: wire ?? JSON.stringify(input) },
    }));
    return [
      {
        role: 'assistant',
        content: content === '' ? null : content,
        ...(reasoning !== '' && { reasoning_content: reasoning }),
        ...(calls.length > 0 && { tool_calls: calls }),
      },
    ];
  });
}

// ---- Cloudflare agents: an answer's message holds its calls with their results -----------

export function toSession(messages) {
  const session = [];
  const calls = new Map();
  for (const [at, message] of messages.entries()) {
    const text = textOf(message.content);
    if (message.role === 'tool') {
      const part = calls.get(message.tool_call_id);
      if (part) Object.assign(part, { output: text, state: 'output-available' });
      continue;
    }
    const parts = text === '' ? [] : [{ type: 'text', text }];
    for (const { id, function: call } of message.tool_calls ?? []) {
      const input = decoded(call.arguments);
      const type = `tool-${call.name}`;
      const state = 'input-available';
      const wire = call.arguments;
      const part = { type, toolName: call.name, toolCallId: id, input, state, wire };
      parts.push(part);
      calls.set(id, part);
    }
    session.push({ id: `m${at}`, role: message.role, parts });
  }
  return session;
}

export function fromSession(session) {
  return session.flatMap(({ role, parts }) => {
    const content = parts
      .filter((part) => part.type === 'text')
      .map((part) => part.text)
      .join('');
    const tools = parts.filter((part) => part.toolCallId !== undefined);
    const calls = tools.map(({ toolCallId: id, toolName: name, wire }) => {
      return { id, type: 'function', function: { name, arguments: wire } };
    });
    const results = tools
      .filter((part) => part.output !== undefined)
      .map((part) => ({ role: 'tool', tool_call_id: part.toolCallId, content: part.output }));
    const whole = { role, content: content === '' && calls.length > 0 ? null : content };
    return [{ ...whole, ...(calls.length > 0 && { tool_calls: calls }) }, ...results];
  });
}
