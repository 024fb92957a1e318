// Gemini generateContent: what the API refuses, in its own words, and how it answers.

export const path = '/v1beta/models/gemini-test:generateContent';

/** What the API would say of a request, or undefined. */
export function problem({ contents }) {
  if (!Array.isArray(contents) || contents.length === 0) return 'contents is not specified';
  if (contents[0].role !== 'user') return 'Please ensure that the first content is of the user';
  let due = [];
  for (const [at, { role, parts }] of contents.entries()) {
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.';
    if (!Array.isArray(parts) || parts.length === 0) {
      return `* GenerateContentRequest.contents[${at}].parts: contents.parts must not be empty.`;
    }
    const empty = parts.some((part) => Object.keys(part).length === 0);
    if (empty)
      return `Unable to submit request because contents[${at}] must have one initialized field`;
    const calls = parts.filter((part) => part.functionCall);
    const answers = parts.filter((part) => part.functionResponse);
    if (role === 'user') {
      const same =
        answers.length === due.length &&
        answers.every(({ functionResponse }, place) => functionResponse.name === due[place]);
      if (!same) {
        return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
      }
      for (const { functionResponse } of answers) {
        const { response } = functionResponse;
        if (typeof response !== 'object' || response === null || Array.isArray(response)) {
          return `Invalid value at 'contents[${at}].parts.function_response.response' (type.googleapis.com/google.protobuf.Struct)`;
        }
      }
      due = [];
      continue;
    }
    if (answers.length > 0) return 'A function response cannot be in a turn of the model';
    if (due.length > 0 || (calls.length > 0 && contents[at - 1].role !== 'user')) {
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    }
    due = calls.map(({ functionCall }) => functionCall.name);
  }
  if (due.length > 0)
    return 'Please ensure that function response turn comes immediately after a function call turn.';
}

export const refusal = (message) => ({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });

export const overflow = (window, tokens) => ({
  status: 400,
  body: refusal(
    `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`,
  ),
});

export function answer({ text = 'Done.', calls = [], tokens = 1000 }) {
  const called = calls.map(({ name, input }) => ({ functionCall: { name, args: input } }));
  return {
    candidates: [
      {
        content: { role: 'model', parts: calls.length > 0 ? called : [{ text }] },
        finishReason: 'STOP',
        index: 0,
      },
    ],
    usageMetadata: {
      promptTokenCount: tokens,
      candidatesTokenCount: 10,
      totalTokenCount: tokens + 10,
    },
    modelVersion: 'gemini-test',
  };
}
