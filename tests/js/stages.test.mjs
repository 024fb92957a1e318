import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compactor, plan, render, Session, TidemarkError } from '../../pkg/index.js';
import { MemoryStore } from '../../pkg/stores/memory.js';
import { assertValid } from './chat.mjs';

const words = (tag, count) => `${tag}:${' word'.repeat(count)}`;

const call = (id, name = 'read') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: '{"path":"a"}' } }],
});
const result = (id, content) => ({ role: 'tool', tool_call_id: id, content });

/** A user, pairs of calls and results at 1 and 2, 3 and 4, …, an assistant and the newest user. */
function session(pairs = 6, size = 300) {
  const messages = [{ role: 'user', content: 'start' }];
  for (let at = 0; at < pairs; at++) {
    messages.push(
      call(`c${at}`, at % 2 ? 'bash' : 'read'),
      result(`c${at}`, words(`r${at}`, size)),
    );
  }
  messages.push({ role: 'assistant', content: 'done' }, { role: 'user', content: 'next' });
  return messages;
}

const base = { window: 100_000, reserve: 0, tail: 2 };

test('a stage of your own decides by what it is shown', async () => {
  const messages = session();
  let seen;
  const mine = {
    name: 'biggest-first',
    at: 2,
    plan(context) {
      seen = context;
      const results = context.parts.filter((part) => part.kind === 'result' && !part.protected);
      results.sort((a, b) => b.tokens - a.tokens);
      for (const part of results.slice(0, 2)) assert.ok(context.clear(part) > 200);
    },
  };
  messages[4].content = words('large', 900);
  messages[8].content = words('large', 800);
  const compactor = new Compactor({ ...base, stages: [mine, 'summarize'], compactAt: 50_000 });
  const outcome = await compactor.compact(messages, { force: false });
  assert.deepEqual(
    outcome.decisions.map(({ stage, kind, index, reason }) => [stage, kind, index, reason]),
    [
      ['biggest-first', 'cleared', 4, 'watermark'],
      ['biggest-first', 'cleared', 8, 'watermark'],
    ],
  );
  assert.deepEqual(outcome.stages, ['biggest-first']);
  assertValid(outcome.messages);
  assert.equal(seen.stage, 'biggest-first');
  assert.deepEqual(seen.messages, messages);
  assert.equal(seen.messages[4], messages[4]);
  assert.equal(seen.limit, 100_000);
  const [first] = seen.units;
  assert.deepEqual(
    { ...first, tokens: 0 },
    { from: 0, to: 1, tokens: 0, pinned: false, protected: false },
  );
  const part = seen.parts.find(({ index }) => index === 4);
  assert.deepEqual(
    [part.kind, part.role, part.tool, part.failed],
    ['result', 'tool', 'bash', false],
  );
  assert.ok(seen.tokens < outcome.tokensBefore, 'what it decided is taken off');
});

test('a stage of your own previews with the store, drops units and folds', async () => {
  const store = new MemoryStore();
  const asked = [];
  const compactor = new Compactor({
    ...base,
    store,
    summarizer: ({ from, to }) => {
      asked.push([from, to]);
      return '';
    },
    stages: [
      {
        name: 'mine',
        plan(context) {
          context.summarize(3);
          context.drop({ from: 5, to: 7 });
          context.offload({ index: 8, part: 0 }, 50);
        },
      },
    ],
  });
  const messages = session();
  const outcome = await compactor.compact(messages, { force: true });
  assert.equal(outcome.summary.covered, 3);
  assert.deepEqual(asked[0], [0, 3]);
  assert.deepEqual(
    new Set(outcome.decisions.map(({ kind }) => kind)),
    new Set(['dropped', 'offloaded', 'covered']),
  );
  assert.ok(outcome.decisions.every(({ stage }) => stage === 'mine'));
  assertValid(outcome.messages);
  const { ref } = outcome.decisions.find(({ kind }) => kind === 'offloaded');
  assert.match(await compactor.recall({ ref }), /r3: word/);
  assert.ok(outcome.messages.includes(messages[3]), 'what stands between stays');
});

test('a decision that breaks a rule throws where it is made, and names it', async () => {
  const errors = [];
  const broken = {
    name: 'broken',
    plan(context) {
      for (const decide of [
        () => context.clear({ index: 0, part: 0 }),
        () => context.clear({ index: 14, part: 0 }),
        () => context.drop({ from: 1, to: 2 }),
        () => context.summarize(4),
        () => context.clear({ index: 2.5, part: 0 }),
        () => context.clear({ index: 2n, part: 0 }),
      ]) {
        assert.throws(decide, (error) => {
          assert.ok(error instanceof TidemarkError);
          errors.push([error.code, error.path]);
          return true;
        });
      }
      context.clear({ index: 2, part: 0 });
    },
  };
  const compactor = new Compactor({ ...base, stages: [broken], pin: (_, index) => index === 0 });
  const outcome = await compactor.compact(session(), { force: true });
  assert.deepEqual(errors, [
    ['invalid_decision', 'messages[0].parts[0]'],
    ['invalid_decision', 'messages[14].parts[0]'],
    ['invalid_decision', 'messages[2]'],
    ['invalid_decision', 'messages[4]'],
    ['invalid_decision', 'decision.index'],
    ['invalid_decision', 'decision.index'],
  ]);
  assert.deepEqual(
    outcome.decisions.map(({ index }) => index),
    [2],
  );
  assert.deepEqual(outcome.failures, []);
});

for (const [what, fail, message] of [
  [
    'throws',
    () => {
      throw new Error('boom');
    },
    /boom/,
  ],
  ['returns a promise', async () => {}, /promise/],
  ['rejects later', () => Promise.reject(new Error('late')), /promise/],
  ['lets a refusal through', (context) => context.drop({ from: 1, to: 2 }), /a unit is cut/],
]) {
  test(`a stage of your own that ${what} decides nothing, and the budget holds`, async () => {
    const stage = {
      name: 'faulty',
      plan(context) {
        context.clear({ index: 2, part: 0 });
        return fail(context);
      },
    };
    const options = { window: 1500, reserve: 0, stages: [stage, 'summarize', 'drop', 'elide'] };
    const outcome = await new Compactor(options).compact(session());
    assert.equal(outcome.fits, true);
    assert.equal(outcome.failures.length, 1);
    assert.deepEqual([outcome.failures[0].effect, outcome.failures[0].code], ['decide', 'host']);
    assert.match(outcome.failures[0].message, message);
    assert.ok(outcome.decisions.every(({ stage: name }) => name !== 'faulty'));
  });
}

test('a stage cannot call the session that runs it, nor decide later', () => {
  let kept;
  const own = new Session({
    ...base,
    stages: [
      {
        name: 'nosy',
        plan(context) {
          kept = context;
          assert.throws(() => own.plan(session()), { code: 'invalid_decision' });
          assert.equal(own.estimate().tokens, context.tokens, 'looking is fine');
        },
      },
    ],
  });
  assert.equal(plan(own, session(), { force: true }).kind, 'done');
  assert.throws(() => kept.clear({ index: 2, part: 0 }), { code: 'unknown_effect' });
  assert.equal(render(own).length, session().length);
});

test('a policy of your own takes the place of all stages', async () => {
  let calls = 0;
  const policy = (context) => {
    calls++;
    // The newest ten messages and nothing else.
    const units = context.units.filter(({ to }) => to <= context.messages.length - 10);
    for (const unit of units.filter((one) => !one.pinned && !one.protected)) context.drop(unit);
  };
  const compactor = new Compactor({ ...base, policy, recall: false });
  const all = session(20);
  let outcome;
  for (let end = 1; end <= all.length; end++) {
    outcome = await compactor.compact(all.slice(0, end));
    assertValid(outcome.messages);
    assert.ok(outcome.messages.length <= 13, `${outcome.messages.length} at ${end}`);
  }
  assert.ok(calls > 10);
  assert.equal(outcome.messages.at(-1), all.at(-1));
  const resumed = Compactor.restore(compactor.checkpoint(), { ...base, policy, recall: false });
  assert.deepEqual((await resumed.compact(all)).messages, outcome.messages);
});

test('a dry run asks your stage and decides nothing', async () => {
  const stage = { name: 'mine', plan: (context) => void context.drop({ from: 1, to: 5 }) };
  const compactor = new Compactor({ ...base, stages: [stage] });
  const messages = session();
  const before = await compactor.compact(messages);
  const dry = await compactor.compact(messages, { force: true, dryRun: true });
  assert.equal(dry.compacted, true);
  assert.deepEqual(dry.messages, before.messages);
  assert.equal(compactor.stats().bursts, 0);
});

test('stages of your own that cannot be are refused by name', () => {
  const path = (options) => {
    try {
      new Compactor(options);
    } catch (error) {
      return [error.code, error.path];
    }
    return undefined;
  };
  const plan = () => {};
  for (const [options, place] of [
    [{ stages: [{ name: 'x', plan: 1 }] }, 'options.stages[0].plan'],
    [{ stages: ['clear', { plan }] }, 'options.stages[1].name'],
    [{ stages: [{ name: '', plan }] }, 'options.stages[0].name'],
    [{ stages: [{ name: 'x', plan, at: -1 }] }, 'options.stages[0].at'],
    [{ stages: [{ name: 'x', plan, when: 1 }] }, 'options.stages[0].when'],
    [{ policy: 'truncate' }, 'options.policy'],
    [{ policy: plan, stages: ['clear'] }, 'options.policy'],
    [{ preset: 'nice' }, 'options.preset'],
  ]) {
    assert.deepEqual(path(options), ['invalid_option', place], JSON.stringify(options));
  }
});

test('explain and stats speak through the compactor', async () => {
  const compactor = new Compactor({ ...base, stages: ['clear'] });
  const messages = session();
  await compactor.compact(messages, { force: true });
  const cleared = compactor.explain(2);
  assert.deepEqual(
    [cleared.standing, cleared.role, cleared.from, cleared.to],
    ['changed', 'tool', 1, 3],
  );
  assert.equal(cleared.parts[0].decision, 'cleared');
  assert.equal(compactor.explain(14).standing, 'unanswered');
  for (const index of [-1, 1.5, 99, '2']) {
    assert.throws(() => compactor.explain(index), { code: 'invalid_option', path: 'index' });
  }
  const stats = compactor.stats();
  assert.deepEqual([stats.bursts, stats.parts, stats.summarizerCalls], [1, 3, 0]);
  assert.ok(stats.tokensSaved > 600 && stats.transcriptTokens > stats.tokens);
  assert.equal(stats.turnsToBurst, null, 'nothing is known yet of how it grows');
});
