// Prices, validity and retention, on cases small enough to work out by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ANTHROPIC_PRICES,
  callsOf,
  compactor,
  identifiers,
  mentions,
  OPENAI_PRICES,
  PrefixCache,
  refusal,
  replay,
  whole,
} from '../../pkg/replay/index.js';
import { agent, recorded } from './chat.mjs';

/** One token a character. */
const count = (text) => text.length;
const near = (actual, expected) => assert.ok(Math.abs(actual - expected) < 1e-6, `${actual}`);

const segment = (text, lead = false) => ({ text, tokens: text.length, lead });
const long = (letter, length) => segment(letter.repeat(length));

/** Prices that make sums easy: no least size, steps of one token. */
const exact = { ...OPENAI_PRICES, minimum: 0, output: 8, rule: { kind: 'automatic', step: 1 } };

// ---- the cache ---------------------------------------------------------------------

test('a request that extends an earlier one reads it from the cache', () => {
  const cache = new PrefixCache(exact, count);
  const first = cache.charge([long('a', 100)], 0, 0);
  assert.deepEqual(first, { read: 0, written: 100, plain: 0, output: 0, cost: 100 });
  const second = cache.charge([long('a', 100), long('b', 50)], 2, 10);
  assert.deepEqual([second.read, second.written], [100, 50]);
  near(second.cost, 100 * 0.1 + 50 + 2 * 8);
});

test('what follows the first difference is written anew', () => {
  const cache = new PrefixCache(exact, count);
  cache.charge([long('a', 10), segment('xyz'), long('b', 100)], 0, 0);
  const { read, written } = cache.charge([long('a', 10), segment('xyw'), long('b', 100)], 0, 1);
  assert.deepEqual([read, written], [12, 101]);
});

test('a prefix is forgotten when its time is over, and reading it starts the time again', () => {
  const cache = new PrefixCache(exact, count);
  const request = [long('a', 100)];
  cache.charge(request, 0, 0);
  assert.equal(cache.charge(request, 0, 300).read, 100);
  assert.equal(cache.charge(request, 0, 600).read, 100);
  assert.equal(cache.charge(request, 0, 901).read, 0);
});

test('small prompts are not cached, and larger ones in whole steps', () => {
  const cache = new PrefixCache(OPENAI_PRICES, count);
  cache.charge([long('a', 1000)], 0, 0);
  assert.deepEqual(cache.charge([long('a', 1000)], 0, 1).plain, 1000);
  cache.charge([long('b', 1200)], 0, 2);
  const { read, written, plain } = cache.charge([long('b', 1200), long('c', 500)], 0, 3);
  assert.deepEqual([read, written, plain], [9 * 128, 13 * 128 - 9 * 128, 1700 - 13 * 128]);
});

test('with breakpoints, only what ended at one is found again', () => {
  const rule = { kind: 'breakpoints', most: 2, lookback: 3 };
  const cache = new PrefixCache({ ...ANTHROPIC_PRICES, minimum: 0, rule }, count);
  const lead = segment('L'.repeat(10), true);
  cache.charge([lead, long('a', 5), long('b', 5)], 0, 0); // breakpoints after L and after b
  const next = [lead, long('a', 5), long('b', 5), long('c', 4)];
  const grown = cache.charge(next, 0, 1);
  assert.deepEqual([grown.read, grown.written], [20, 4]);
  near(grown.cost, 20 * 0.1 + 4 * 1.25);
  // a is the same, but no breakpoint was there: only the lead is found.
  assert.equal(cache.charge([lead, long('a', 5), long('x', 5)], 0, 2).read, 10);
  // b and c are farther back than the look-back from the end.
  const far = [...next, long('d', 1), long('e', 1), long('f', 1), long('g', 1)];
  assert.equal(cache.charge(far, 0, 3).read, 10);
});

// ---- identifiers -------------------------------------------------------------------

test('finds the identifiers of a text, and no words', () => {
  const text = `See https://a.example/b?c=1, src/a.rs:12 and "lib/x/y" (id 550e8400-e29b-41d4-a716-446655440000).
    Commit 51b1093 fixed PROJ-12 and #4711; ParseError, ENOENT in /etc/hosts. 8,072 of 20000 rows,
    1/2 and/or 123 e.g. this. C:\\Users\\me\\a.txt main.py user_lee_3668 XEHM4B console.log`;
  assert.deepEqual(
    [...identifiers(text)],
    [
      'https://a.example/b?c=1',
      'src/a.rs',
      'lib/x/y',
      '550e8400-e29b-41d4-a716-446655440000',
      '51b1093',
      'PROJ-12',
      '#4711',
      'ParseError',
      'ENOENT',
      '/etc/hosts',
      '8,072',
      '20000',
      'C:\\Users\\me\\a.txt',
      'main.py',
      'user_lee_3668',
      'XEHM4B',
    ],
  );
});

test('a part of a longer word is no mention', () => {
  assert.ok(mentions('at /home/x/src/a.rs:3', 'src/a.rs'));
  assert.ok(!mentions('src/a.rst', 'src/a.rs'));
  assert.ok(!mentions('112345', '12345'));
  assert.ok(mentions('112345 12345', '12345'));
});

// ---- validity ----------------------------------------------------------------------

test('refuses what the API refuses, and says where', () => {
  const call = (id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const user = { role: 'user', content: 'hi' };
  const calls = (...ids) => ({ role: 'assistant', content: null, tool_calls: ids.map(call) });
  const result = (id) => ({ role: 'tool', tool_call_id: id, content: '' });
  assert.equal(refusal([user, calls('a', 'b'), result('b'), result('a'), user]), null);
  assert.match(refusal([]), /too short/);
  assert.match(refusal([user, result('a')]), /^messages\[1\]: role 'tool'/);
  assert.match(refusal([user, calls('a', 'b'), result('a'), user]), /^messages\[1\]: a call/);
  assert.match(refusal([user, calls('a')]), /^messages\[1\]: a call/);
  assert.match(refusal([user, calls('a', 'a')]), /duplicate/);
  assert.match(refusal([{ role: 'user', content: '' }]), /^messages\[0\]: content/);
  assert.match(refusal([{ role: 'user', content: [{ type: 'text', text: '' }] }]), /content/);
  assert.match(refusal([user, { role: 'assistant', content: null }]), /tool_calls must be set/);
  assert.match(refusal([user, { role: 'assistant', content: 'x', tool_calls: [] }]), /empty array/);
  assert.match(refusal([{ role: 'model', content: 'x' }]), /invalid role/);
});

// ---- whole sessions ----------------------------------------------------------------

/** Messages whose sizes are round: four tokens of framing each. */
const say = (role, text) => ({ role, content: text });

test('every call is priced, and the transcript itself is no rewrite', async () => {
  const transcript = [
    say('user', 'u'.repeat(96)),
    say('assistant', 'a'.repeat(46)),
    say('user', 'v'.repeat(46)),
    say('assistant', 'b'.repeat(46)),
  ];
  assert.deepEqual(callsOf(transcript), [1, 3]);
  const report = await replay(transcript, whole, { window: 150, count, prices: exact });
  assert.equal(report.calls, 2);
  // 100 written; then 100 read, 50 + 50 written.
  near(report.cost, 100 + 100 * 0.1 + 100);
  assert.deepEqual([report.rewrites, report.refused, report.over, report.largest], [0, 0, 1, 200]);
});

test('no call is made while results are due', () => {
  const calls = (...ids) => ({ ...say('assistant', null), tool_calls: ids.map((id) => ({ id })) });
  const result = (id) => ({ ...say('tool', 'x'), tool_call_id: id });
  const log = [say('user', 'u'), calls('a'), calls('b'), result('a'), say('assistant', 'between')];
  assert.deepEqual(callsOf([...log, result('b'), say('assistant', 'y')]), [1, 6]);
  const batch = [say('user', 'u'), calls('a', 'b'), result('a'), result('b'), calls('c')];
  assert.deepEqual(callsOf(batch), [1, 4]);
  // The user broke in.
  assert.deepEqual(callsOf([say('user', 'u'), calls('a'), say('user', 'v'), calls('b')]), [1, 3]);
});

test('summary calls are priced like all others', async () => {
  const transcript = [say('user', 'u'.repeat(96)), say('assistant', 'ok')];
  const policy = (messages, { asked }) => {
    asked([say('user', 'p'.repeat(16))], 'summary');
    return { messages };
  };
  const report = await replay(transcript, policy, { window: 1000, count, prices: exact });
  near(report.summaryCost, 20 + 7 * 8);
  // The two requests have the role in common: five of the hundred.
  near(report.cost, 20 + 7 * 8 + 95 + 5 * 0.1);
  assert.equal(report.summaries, 1);
});

test('sorts long-range identifiers into visible, recallable and lost', async () => {
  const filler = say('user', 'x'.repeat(300));
  const transcript = [
    say('user', 'see src/one.rs, src/two.rs and src/three.rs'),
    say('assistant', 'yes'),
    filler,
    say('user', 'recent: src/near.rs'),
    say('assistant', 'src/one.rs src/two.rs src/three.rs src/near.rs src/new.rs'),
  ];
  // The newest 200 tokens hold src/near.rs; the filler parts them from the rest.
  const policy = (messages) => ({
    messages: messages.length < 3 ? messages : [say('user', 'src/one.rs'), messages.at(-1)],
    recalls: (name) => name === 'src/two.rs',
  });
  const report = await replay(transcript, policy, { window: 1000, count });
  assert.deepEqual(report.retention, { used: 3, visible: 1, recallable: 1, lost: 1 });
  assert.equal(report.rewrites, 1);
});

test('nothing is counted before a view leaves something out', async () => {
  const transcript = [
    say('user', 'see src/one.rs'),
    say('assistant', 'yes'),
    say('user', 'x'.repeat(300)),
    say('assistant', 'src/one.rs'),
  ];
  const { retention } = await replay(transcript, whole, { window: 1000, count });
  assert.equal(retention.used, 0);
});

test('usage of each call goes into the next', async () => {
  const heard = [];
  const policy = (messages, { call, usage }) => {
    heard.push([call, usage]);
    return { messages };
  };
  const transcript = [say('user', 'abcdef'), say('assistant', 'x'), say('user', 'y')];
  await replay([...transcript, say('assistant', 'z')], policy, { window: 1000, count });
  assert.deepEqual(heard, [
    [0, undefined],
    [1, 10],
  ]);
});

test('a compactor loses nothing, fits, and is never refused', async () => {
  const estimate = (text) => Math.ceil(text.length / 4);
  for (const transcript of [recorded('mid'), agent(40)]) {
    const calls = [];
    const policy = compactor({ window: 12_000 });
    const onCall = (call) => calls.push(call);
    const report = await replay(transcript, policy, { window: 12_000, count: estimate, onCall });
    assert.equal(calls.length, report.calls);
    assert.ok(report.rewrites > 0);
    assert.deepEqual([report.refusals, report.over, report.retention.lost], [{}, 0, 0]);
  }
});

test('what the summarizer of a compactor is asked costs', async () => {
  const summarizer = () => 'nothing of note happened';
  const policy = compactor({ window: 4000, stages: ['summarize', 'elide'], summarizer });
  const report = await replay(agent(30, 800), policy, {
    window: 4000,
    count: (text) => Math.ceil(text.length / 4),
  });
  assert.ok(report.summaries > 0);
  assert.ok(report.summaryCost > 0);
});
