// OpenAI Responses: what the API refuses, in its own words, and how it answers.

export const path = '/v1/responses';

/** What the API would say of a request, or undefined. */
export function problem({ input }) {
  if (!Array.isArray(input) || input.length === 0) return "Missing required parameter: 'input'.";
  const calls = new Set();
  const outputs = new Set();
  const items = input.map((item) => (item.type === 'item_reference' ? stored.get(item.id) : item));
  const lost = items.indexOf(undefined);
  if (lost >= 0) return `Item with id '${input[lost].id}' not found.`;
  for (const [at, item] of items.entries()) {
    const next = items[at + 1];
    switch (item.type ?? 'message') {
      case 'message':
        if (!['user', 'assistant', 'system', 'developer'].includes(item.role)) {
          return `Invalid value: '${item.role}'. (input[${at}].role)`;
        }
        if (!filled(item.content)) return `Invalid value for 'input[${at}].content'`;
        break;
      case 'function_call':
        if (typeof item.arguments !== 'string') return `Invalid type for 'input[${at}].arguments'`;
        if (calls.has(item.call_id) && !outputs.has(item.call_id))
          return `Duplicate call_id in input[${at}]`;
        calls.add(item.call_id);
        outputs.delete(item.call_id);
        break;
      case 'function_call_output':
        if (!calls.has(item.call_id)) {
          return `No tool call found for function call output with call_id ${item.call_id}.`;
        }
        if (outputs.has(item.call_id)) return `Duplicate output for ${item.call_id}`;
        outputs.add(item.call_id);
        break;
      case 'reasoning': {
        const follows =
          next && (next.role === 'assistant' || /^(reasoning|.*_call)$/.test(next.type ?? ''));
        if (!follows) {
          return `Item '${item.id}' of type 'reasoning' was provided without its required following item.`;
        }
        break;
      }
      default:
    }
  }
  for (const id of calls)
    if (!outputs.has(id)) return `No tool output found for function call ${id}.`;
}

/** Items of answers, by id: requests may refer to them. */
const stored = new Map();

function filled(content) {
  if (typeof content === 'string') return content !== '';
  return Array.isArray(content) && content.length > 0 && content.every((part) => part.text !== '');
}

export const refusal = (message) => ({
  error: { message, type: 'invalid_request_error', param: 'input', code: null },
});

export const overflow = (window, tokens) => ({
  status: 400,
  body: {
    error: {
      message: `Your input exceeds the context window of this model (${tokens} tokens requested, maximum context length is ${window} tokens). Please adjust your input and try again.`,
      type: 'invalid_request_error',
      param: 'input',
      code: 'context_length_exceeded',
    },
  },
});

export function answer({ text = 'Done.', calls = [], tokens = 1000 }) {
  const said = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
  };
  const called = calls.map(({ id, name, input }) => ({
    id: `fc_${id}`,
    type: 'function_call',
    call_id: id,
    name,
    arguments: JSON.stringify(input),
    status: 'completed',
  }));
  const items = calls.length > 0 ? called : [said];
  for (const item of items) stored.set(item.id, item);
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'gpt-test',
    status: 'completed',
    error: null,
    incomplete_details: null,
    output: items,
    usage: {
      input_tokens: tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 10,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: tokens + 10,
    },
  };
}
