// Overflow errors as client libraries throw them, wrapped or not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compactor } from '../../pkg/index.js';

const text =
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
const body = { error: { message: text, code: 'context_length_exceeded' } };
const errors = {
  'a string': text,
  'an Error': new Error(text),
  'an SDK error': Object.assign(new Error(`400 ${text}`), { status: 400, error: body.error }),
  'a response body': Object.assign(new Error('Bad Request'), {
    statusCode: 400,
    responseBody: JSON.stringify(body),
  }),
  'an error with a response': Object.assign(new Error('Request failed'), {
    response: { status: 400, data: body },
  }),
  'an error with a cause': new Error('send failed', { cause: new Error(text) }),
  'the last of retried errors': Object.assign(new Error('failed after 3 attempts'), {
    lastError: new Error(text),
  }),
  'an error whose getters throw': Object.defineProperty(new Error(text), 'response', {
    get() {
      throw new Error('boom');
    },
  }),
};

for (const [name, overflow] of Object.entries(errors)) {
  test(`${name} is understood as an overflow`, async () => {
    const transcript = Array.from({ length: 40 }, (_, at) => ({
      role: at % 2 ? 'assistant' : 'user',
      content: `${at}: ${'some words that fill the window '.repeat(40)}`,
    }));
    const compactor = new Compactor({ window: 128_000 });
    await compactor.compact(transcript);
    const result = await compactor.compact(transcript, { overflow });
    assert.equal(result.window, 8192);
    assert.equal(result.compacted && result.fits, true);
  });
}

test('a bare code is understood as an overflow', async () => {
  const compactor = new Compactor({ window: 128_000 });
  const transcript = [{ role: 'user', content: 'hi' }];
  const { overflow } = await compactor.compact(transcript, {
    overflow: Object.assign(new Error('Bad Request'), { code: 'context_length_exceeded' }),
  });
  assert.equal(overflow, true);
});
