// Summarizers, stores and hooks that are slow, never answer, or answer too late.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as tick } from 'node:timers/promises';
import { Compactor } from '../../pkg/index.js';
import { agent, assertValid, bytes, summary, turn } from './chat.mjs';

const window = 16_000;
/** A pipeline that asks the summarizer at once. */
const summarizing = { window, stages: ['summarize', 'drop', 'elide'] };
const never = () => new Promise(() => {});

test('a summarizer that never answers is aborted in time, and the next call goes on', async () => {
  const signals = [];
  const compactor = new Compactor({
    ...summarizing,
    summarizerTimeout: 20,
    summarizer(_, { signal }) {
      signals.push(signal);
      return never();
    },
  });
  const [first, second] = await Promise.all([
    compactor.compact(agent(20)),
    compactor.compact(agent(21)),
  ]);
  assert.equal(first.summary.by, 'local');
  assert.ok(first.fits && second.fits);
  assert.match(first.failures[0].message, /no answer within 20 ms/);
  assert.equal(first.failures[0].effect, 'summarize');
  assert.ok(signals.length > 0 && signals.every((signal) => signal.aborted));
});

test('an answer after the deadline changes nothing', async () => {
  let answer;
  const compactor = new Compactor({
    ...summarizing,
    summarizerTimeout: 20,
    summarizer: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  });
  const { messages } = await compactor.compact(agent(20));
  const before = compactor.checkpoint();
  answer(summary);
  await tick();
  assert.equal(compactor.checkpoint(), before);
  assert.equal(JSON.parse(before).summary.by, 'local');
  assert.deepEqual(bytes((await compactor.compact(agent(20))).messages), bytes(messages));
});

test('a summarizer in time is not aborted', async () => {
  let seen;
  const compactor = new Compactor({
    ...summarizing,
    summarizerTimeout: 10_000,
    async summarizer(_, { signal }) {
      seen = signal;
      await sleep(5);
      return summary;
    },
  });
  assert.equal((await compactor.compact(agent(20))).summary.by, 'host');
  await tick();
  assert.equal(seen.aborted, false);
});

test('aborting the call aborts the summarizer that it waits for', async () => {
  let seen;
  const compactor = new Compactor({
    ...summarizing,
    summarizer(_, { signal }) {
      seen = signal;
      return never();
    },
  });
  const controller = new AbortController();
  const call = compactor.compact(agent(20), { signal: controller.signal });
  await tick();
  controller.abort(new Error('the user left'));
  await assert.rejects(call, /the user left/);
  assert.ok(seen.aborted);
  assert.match(seen.reason.message, /the user left/);
});

test('a store that never answers is given up, on put and on recall', async () => {
  const compactor = new Compactor({
    window,
    storeTimeout: 20,
    store: { put: never, get: never },
  });
  const result = await compactor.compact(agent(20, 12_000));
  assert.ok(result.fits);
  assert.match(result.failures[0].message, /no answer within 20 ms/);
  assert.equal(result.failures[0].effect, 'put');
  assert.match(await compactor.recall({ ref: '0123456789ab' }), /nothing is known/);
});

test('deadlines are milliseconds', () => {
  for (const name of ['summarizerTimeout', 'storeTimeout']) {
    for (const value of [0, -1, Number.NaN, '20', null, 2 ** 31]) {
      assert.throws(() => new Compactor({ window, [name]: value }), {
        code: 'invalid_option',
        path: `options.${name}`,
      });
    }
    new Compactor({ window, [name]: Number.POSITIVE_INFINITY }).dispose();
  }
});

test('messages appended while a summary is written are in neither it nor lost', async () => {
  const messages = agent(20);
  const newest = { role: 'user', content: 'And the linker, is it slow too?' };
  const prompts = [];
  const compactor = new Compactor({
    ...summarizing,
    async summarizer({ prompt }) {
      prompts.push(prompt);
      if (messages.at(-1) !== newest) messages.push(newest);
      await tick();
      return summary;
    },
  });
  const first = await compactor.compact(messages);
  assert.ok(prompts.every((prompt) => !prompt.includes('the linker')));
  assert.ok(!first.messages.includes(newest));
  const second = await compactor.compact(messages);
  assert.equal(second.messages.at(-1), newest);
  assertValid(second.messages);
});

test('a call that comes while another runs waits, and asks for no second summary', async () => {
  let running = 0;
  let calls = 0;
  const compactor = new Compactor({
    ...summarizing,
    async summarizer() {
      assert.equal(++running, 1);
      calls++;
      await sleep(5);
      running--;
      return summary;
    },
  });
  const messages = agent(20);
  const [first, second] = await Promise.all([
    compactor.compact(messages),
    compactor.compact(messages),
  ]);
  const asked = calls;
  assert.equal(first.compacted, true);
  assert.equal(second.compacted, false);
  assert.deepEqual(second.messages, first.messages);
  await compactor.compact([...messages, ...turn(99, 100)]);
  assert.equal(calls, asked);
});

test('tools and instructions of a call that was refused do not stay', async () => {
  const compactor = new Compactor({ window });
  const messages = agent(3);
  const tools = [{ type: 'function', function: { name: 'ls', description: 'x '.repeat(500) } }];
  const before = (await compactor.compact(messages, { system: 'Be brief.' })).tokensAfter;
  await assert.rejects(
    compactor.compact(messages, { tools, system: 'Be long. '.repeat(200), usage: -1 }),
    { code: 'invalid_option' },
  );
  assert.equal(compactor.estimate().tokens, before);
  const circular = [...messages, { role: 'user', content: 'x', self: null }];
  circular.at(-1).self = circular;
  await assert.rejects(compactor.compact(circular, { tools }), { code: 'invalid_transcript' });
  assert.equal(compactor.estimate().tokens, before);
});
