// Anthropic Messages: what the API refuses, in its own words, and how it answers.

export const path = '/v1/messages';

/** What the API would say of a request, or undefined. */
export function problem({ messages, max_tokens, system }) {
  if (!Number.isInteger(max_tokens)) return 'max_tokens: Field required';
  if (!Array.isArray(messages) || messages.length === 0)
    return 'messages: at least one message is required';
  if (messages[0].role !== 'user') return 'messages: first message must use the "user" role';
  if (Array.isArray(system) && system.some((block) => block.text === '')) {
    return 'system: text content blocks must be non-empty';
  }
  let markers = 0;
  let due = [];
  for (const [at, { role, content }] of messages.entries()) {
    const place = `messages.${at}`;
    if (role !== 'user' && role !== 'assistant') return `${place}: unexpected role "${role}"`;
    if (content.length === 0) return `${place}: all messages must have non-empty content`;
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    const results = blocks.filter((block) => block.type === 'tool_result');
    const answered = results.map((block) => block.tool_use_id);
    if (role === 'user') {
      const missing = due.filter((id) => !answered.includes(id));
      if (missing.length > 0) {
        return `${place}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
      }
      const orphan = answered.find((id) => !due.includes(id));
      if (orphan) {
        return `${place}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${orphan}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      }
      if (new Set(answered).size !== answered.length)
        return `${place}: each tool_use must have a single result`;
      if (blocks.slice(0, results.length).some((block) => block.type !== 'tool_result')) {
        return `${place}: tool_result blocks must come first`;
      }
    } else if (due.length > 0) {
      return `${place}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${due}`;
    }
    due = [];
    const own = [];
    for (const [index, block] of blocks.entries()) {
      if (block.cache_control) markers++;
      switch (block.type) {
        case 'text':
          if (block.text === '')
            return `${place}.content.${index}: text content blocks must be non-empty`;
          break;
        case 'thinking':
          if (role !== 'assistant')
            return `${place}: thinking blocks may only be in assistant messages`;
          if (!signatures.has(`${block.signature}:${block.thinking}`)) {
            return `${place}.content.${index}: Invalid \`signature\` in \`thinking\` block`;
          }
          break;
        case 'tool_use':
          if (
            block.input === null ||
            typeof block.input !== 'object' ||
            Array.isArray(block.input)
          ) {
            return `${place}.content.${index}.tool_use.input: Input should be a valid dictionary`;
          }
          if (due.includes(block.id)) return `${place}: \`tool_use\` ids must be unique`;
          due.push(block.id);
          break;
        case 'tool_result':
          if (Array.isArray(block.content) && block.content.some((part) => part.text === '')) {
            return `${place}.content.${index}: text content blocks must be non-empty`;
          }
          break;
        case 'image':
        case 'document':
        case 'compaction':
        case 'redacted_thinking':
          break;
        default:
          // Tools that the provider runs have their results in the same message.
          if (role === 'assistant' && block.type === 'server_tool_use') own.push(block.id);
          else if (role !== 'assistant' || !own.includes(block.tool_use_id)) {
            return `${place}.content.${index}: Input tag '${block.type}' found using 'type' does not match any of the expected tags`;
          }
      }
    }
    if (blocks.at(-1)?.type === 'thinking')
      return `${place}: The final block in an assistant message cannot be \`thinking\`.`;
  }
  if (due.length > 0)
    return `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${due}`;
  if (markers > 4)
    return `A maximum of 4 blocks with cache_control may be provided. Found ${markers}.`;
}

/** Thinking that the server has signed: signature and text. */
const signatures = new Set();

/** Takes a signature that the API gave for a true one. */
export function trust(thinking, signature) {
  signatures.add(`${signature}:${thinking}`);
}

/** Signs a thinking text, as the API does with its own. */
export function sign(thinking) {
  const signature = `sig-${signatures.size}-${thinking.length}`;
  trust(thinking, signature);
  return signature;
}

export const refusal = (message) => ({
  type: 'error',
  error: { type: 'invalid_request_error', message },
});

export const overflow = (window, tokens) => ({
  status: 400,
  body: refusal(`prompt is too long: ${tokens} tokens > ${window} maximum`),
});

export function answer({ text = 'Done.', calls = [], tokens = 1000 }) {
  const called = calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input }));
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-test',
    content: calls.length > 0 ? called : [{ type: 'text', text }],
    stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: tokens, output_tokens: 10 },
  };
}
