// Raw bodies, validation and dry runs through the package.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compactor, TidemarkError, validate } from '../../pkg/index.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function request(turns, words) {
  const messages = [{ role: 'user', content: 'Read the files.' }];
  for (let at = 0; at < turns; at++) {
    const call = { name: 'read', arguments: JSON.stringify({ path: `f${at}` }) };
    const calls = [{ id: `c${at}`, type: 'function', function: call }];
    messages.push({ role: 'assistant', content: null, tool_calls: calls });
    messages.push({ role: 'tool', tool_call_id: `c${at}`, content: `file ${at} `.repeat(words) });
  }
  return { model: 'm', temperature: 1, messages, stream: true };
}

test('a body that fits is the same object', async () => {
  const body = encoder.encode(JSON.stringify(request(2, 5)));
  const result = await new Compactor({ window: 100_000 }).compactBody(body);
  assert.equal(result.body, body);
  assert.equal(result.reason, 'under_trigger');
});

test('a text in place of the list of messages is the same object', async () => {
  for (const source of [
    { input: 'hello' },
    { contents: 'hello' },
    { contents: { parts: [{ text: 'hi' }] } },
  ]) {
    const body = encoder.encode(JSON.stringify(source));
    const result = await new Compactor({ window: 100_000 }).compactBody(body);
    assert.deepEqual(
      [result.body === body, result.fits, result.reason],
      [true, true, 'under_trigger'],
    );
  }
});

test('a body that does not fit keeps the bytes around its messages', async () => {
  const source = request(30, 200);
  const body = encoder.encode(JSON.stringify(source, null, 2));
  const compactor = new Compactor({ window: 8_000, recall: false });
  const path = '/v1/chat/completions';
  const result = await compactor.compactBody(body, { path });
  assert.ok(result.compacted && result.fits);
  const text = decoder.decode(result.body);
  const { messages, ...rest } = JSON.parse(text);
  const { messages: _, ...expected } = source;
  assert.deepEqual(rest, expected);
  assert.ok(text.startsWith('{\n  "model": "m",\n  "temperature": 1,\n  "messages": [\n    {'));
  assert.ok(text.endsWith('\n  ],\n  "stream": true\n}'));
  assert.deepEqual(messages.at(-1), source.messages.at(-1));
  // The same conversation through the object path gives the same view.
  const other = new Compactor({ window: 8_000, recall: false });
  assert.deepEqual((await other.compact(source.messages)).messages, messages);
  // And both paths may follow each other on one conversation.
  const again = await compactor.compact(source.messages);
  assert.deepEqual(again.messages, messages);
});

test('what is no request is refused, and the compactor goes on', async () => {
  const compactor = new Compactor({ window: 8_000 });
  await assert.rejects(compactor.compactBody(encoder.encode('{}')), (error) => {
    assert.ok(error instanceof TidemarkError);
    assert.deepEqual([error.code, error.path], ['invalid_transcript', 'body']);
    return true;
  });
  await assert.rejects(compactor.compactBody('{}'), /body: expected the bytes/);
  await assert.rejects(compactor.compactBody(encoder.encode('{}'), { tools: [] }), /request.tools/);
  const { fits } = await compactor.compact(request(1, 1).messages);
  assert.ok(fits);
});

test('validate names kind, place and what the provider would say', () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', tool_calls: [call] },
    { role: 'user', content: 'go on' },
    { role: 'tool', tool_call_id: 'zzz', content: 'x' },
  ];
  const problems = validate(messages);
  assert.deepEqual(
    problems.map(({ kind, index, id }) => [kind, index, id]),
    [
      ['unanswered_call', 1, 'a'],
      ['orphan_result', 3, 'zzz'],
    ],
  );
  assert.match(problems[0].says, /must be followed by tool messages/);
  assert.deepEqual(validate(messages.slice(0, 1)), []);
});

test('a dry run says what would be done and does nothing', async () => {
  const { messages } = request(30, 200);
  const calls = [];
  const store = { put: (key) => void calls.push(key), get: () => undefined };
  const compactor = new Compactor({ window: 8_000, store, summarizer: () => calls.push('s') });
  const dry = await compactor.compact(messages, { dryRun: true });
  assert.ok(dry.compacted && dry.tokensAfter < dry.tokensBefore);
  assert.deepEqual(calls, []);
  assert.deepEqual(dry.messages, messages);
});

test('a conversation that the provider keeps is left alone', async () => {
  const { messages } = request(30, 200);
  const result = await new Compactor({ window: 8_000 }).compact(messages, { serverHistory: true });
  assert.equal(result.reason, 'server_side_history');
  assert.deepEqual(result.messages, messages);
});
