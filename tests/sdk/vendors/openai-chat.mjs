// OpenAI Chat Completions: what the API refuses, in its own words, and how it answers.

export const path = '/v1/chat/completions';

/** What the API would say of a request, or undefined. */
export function problem({ messages }) {
  if (!Array.isArray(messages) || messages.length === 0) return "[] is too short - 'messages'";
  let due = [];
  for (const [at, message] of messages.entries()) {
    const place = `messages.[${at}]`;
    if (message.role === 'tool') {
      if (!due.includes(message.tool_call_id)) {
        return `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (${place})`;
      }
      if (typeof message.content !== 'string' && !filled(message.content)) {
        return `Invalid type for '${place}.content'`;
      }
      due = due.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (due.length > 0) {
      return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${due}`;
    }
    const calls = message.tool_calls ?? [];
    switch (message.role) {
      case 'system':
      case 'developer':
      case 'user':
        if (!filled(message.content)) return `Invalid value for '${place}.content'`;
        break;
      case 'assistant':
        if (message.tool_calls && calls.length === 0)
          return `[] is too short - '${place}.tool_calls'`;
        if (calls.length === 0 && !filled(message.content)) {
          return `Invalid value for '${place}': content or tool_calls must be set`;
        }
        for (const call of calls) {
          if (!call.id || !call.function?.name)
            return `Missing required parameter in '${place}.tool_calls'`;
          if (typeof call.function.arguments !== 'string')
            return `Invalid type for arguments in '${place}'`;
          if (due.includes(call.id)) return `Duplicate tool call id in '${place}'`;
          due.push(call.id);
        }
        break;
      default:
        return `Invalid value: '${message.role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`;
    }
  }
  if (due.length > 0)
    return 'An assistant message with tool_calls must be followed by tool messages';
}

function filled(content) {
  if (typeof content === 'string') return content !== '';
  return Array.isArray(content) && content.length > 0 && content.every((part) => part.text !== '');
}

export const refusal = (message) => ({
  error: { message, type: 'invalid_request_error', param: 'messages', code: null },
});

/** The answer to a request that is longer than the window. */
export const overflow = (window, tokens) => ({
  status: 400,
  body: {
    error: {
      message: `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
  },
});

/** An answer: a text, or calls of a tool. */
export function answer({ text = 'Done.', calls = [], tokens = 1000 }) {
  const tool_calls = calls.map(({ id, name, input }) => ({
    id,
    type: 'function',
    function: { name, arguments: JSON.stringify(input) },
  }));
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-test',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: calls.length > 0 ? null : text,
          ...(calls.length > 0 && { tool_calls }),
        },
        finish_reason: calls.length > 0 ? 'tool_calls' : 'stop',
      },
    ],
    usage: { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 },
  };
}

/** The same answer, a text, as the events of a stream. */
export function* events({ text = 'Done.', tokens = 1000 }) {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-test' };
  const choice = (delta, finish_reason) => [{ index: 0, delta, finish_reason }];
  const usage = { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 };
  yield JSON.stringify({ ...head, choices: choice({ role: 'assistant', content: text }, null) });
  yield JSON.stringify({ ...head, choices: choice({}, 'stop') });
  yield JSON.stringify({ ...head, choices: [], usage });
  yield '[DONE]';
}
