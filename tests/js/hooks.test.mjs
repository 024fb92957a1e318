// Hooks of a compactor: before a burst, before messages are folded, and when a window is learned.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compactor, plan, resolve, Session } from '../../pkg/index.js';
import { agent, assertValid, bytes } from './chat.mjs';

const window = 16_000;
const summarizing = { window, stages: ['summarize', 'drop', 'elide'] };
const never = () => new Promise(() => {});
const summary = '## Plan\nGo on.';

test('beforeBurst is asked once a burst is due, and may veto it', async () => {
  const asked = [];
  let veto = true;
  const compactor = new Compactor({
    ...summarizing,
    beforeBurst(burst, { signal }) {
      asked.push([burst, signal.aborted]);
      return { veto };
    },
  });
  const messages = agent(20);
  assert.equal((await compactor.compact(agent(2))).reason, 'under_trigger');
  assert.equal(asked.length, 0);
  const vetoed = await compactor.compact(messages);
  assert.equal(vetoed.reason, 'vetoed');
  assert.deepEqual(vetoed.messages, messages);
  const [burst, aborted] = asked[0];
  assert.equal(aborted, false);
  assert.deepEqual(Object.keys(burst).sort(), ['cause', 'tail', 'target', 'tokens']);
  assert.equal(burst.tokens, vetoed.tokensBefore);
  veto = false;
  assert.equal((await compactor.compact(messages)).reason, 'compacted');
});

test('beforeBurst may pin messages, now and after a restore', async () => {
  const messages = agent(30);
  const options = {
    ...summarizing,
    beforeBurst: async () => ({ pins: [messages.findIndex((one) => one.role === 'user')] }),
  };
  const compactor = new Compactor(options);
  for (let end = 10; end <= messages.length; end += 2) {
    const { messages: view } = await compactor.compact(messages.slice(0, end));
    assert.ok(view.includes(messages[1]));
    assertValid(view);
  }
  const { messages: view } = await compactor.compact(messages);
  const resumed = Compactor.restore(compactor.checkpoint(), summarizing);
  assert.deepEqual(bytes((await resumed.compact(messages)).messages), bytes(view));
});

for (const [how, beforeBurst] of Object.entries({
  throws() {
    throw new Error('no idea');
  },
  'never answers': never,
  'returns odd pins': () => ({ pins: ['first'] }),
})) {
  test(`a beforeBurst that ${how} does not stop the burst`, async () => {
    const compactor = new Compactor({ ...summarizing, beforeBurst, hookTimeout: 20 });
    const result = await compactor.compact(agent(20));
    assert.ok(result.compacted && result.fits);
    assert.equal(result.failures[0].effect, 'burst');
  });
}

test('flush is handed each message once before it is folded', async () => {
  const spans = [];
  const compactor = new Compactor({ ...summarizing, flush: (span) => void spans.push(span) });
  const messages = agent(60);
  for (let end = 4; end <= messages.length; end += 2) {
    const { summary: folded } = await compactor.compact(messages.slice(0, end));
    if (folded) assert.ok(spans.at(-1).to >= folded.covered);
  }
  assert.ok(spans.length > 1);
  for (const [at, span] of spans.entries()) {
    assert.equal(span.from, at === 0 ? 1 : spans[at - 1].to);
  }
  assert.match(spans[0].text, /Find out why the build is slow/);
});

for (const [how, flush] of Object.entries({
  throws() {
    throw new Error('disk full');
  },
  'never answers': never,
})) {
  test(`a flush that ${how} neither blocks nor breaks the burst`, async () => {
    const compactor = new Compactor({ ...summarizing, flush, hookTimeout: 20 });
    const result = await compactor.compact(agent(20));
    assert.equal(result.reason, 'compacted');
    assert.ok(result.fits);
    assert.deepEqual(
      result.failures.map((failure) => failure.effect),
      ['flush'],
    );
  });
}

test('sessions share the windows they learn', async () => {
  const shared = new Map();
  const key = ({ endpoint, model }) => `${endpoint} ${model}`;
  const learned = [];
  const options = {
    model: 'tiny',
    endpoint: 'https://models.example',
    windows: (at) => shared.get(key(at)),
    onWindow(at) {
      learned.push(at);
      shared.set(key(at), at.window);
    },
  };
  const overflow = "This model's maximum context length is 8192 tokens, you sent 20000 tokens";
  const first = new Compactor(options);
  await first.compact(agent(20), { overflow });
  assert.deepEqual(learned, [{ endpoint: 'https://models.example', model: 'tiny', window: 8192 }]);
  const second = new Compactor(options);
  const result = await second.compact(agent(20));
  assert.equal(result.window, 8192);
  assert.equal(result.reason, 'compacted');
  assert.equal(learned.length, 1);
  const other = new Compactor({ ...options, model: 'another' });
  assert.equal((await other.compact(agent(20))).window, null);
});

test('callbacks for windows that fail change nothing', async () => {
  const fails = () => {
    throw new Error('no');
  };
  const compactor = new Compactor({ window, windows: fails, onWindow: fails });
  const overflow = "This model's maximum context length is 8192 tokens, you sent 20000 tokens";
  assert.equal((await compactor.compact(agent(20), { overflow })).window, 8192);
  for (const odd of ['8000', Number.NaN, -1, 2 ** 40, null]) {
    const result = await new Compactor({ windows: () => odd }).compact(agent(20));
    assert.equal(result.window, null);
  }
});

test('the history of summaries says who made which', async () => {
  let calls = 0;
  const compactor = new Compactor({
    ...summarizing,
    summary: { sections: ['Plan'] },
    summarizer() {
      if (++calls > 1) throw new Error('no credit');
      return summary;
    },
  });
  assert.deepEqual(compactor.summaries(), []);
  await compactor.compact(agent(20));
  const { summary: last } = await compactor.compact(agent(40));
  const all = compactor.summaries();
  const [one] = all;
  assert.deepEqual([one.version, one.by], [1, 'host']);
  assert.deepEqual([all.at(-1).covered, all.at(-1).by], [last.covered, 'local']);
  for (const [at, version] of all.entries()) assert.equal(version.version, at + 1);
  assert.match(await compactor.recall({ ref: one.ref }), /Find out why the build is slow/);
});

test('a prompt that is appended comes with the messages as they were sent', async () => {
  const requests = [];
  const compactor = new Compactor({
    ...summarizing,
    summary: { sections: ['Plan'], request: 'append' },
    summarizer(request) {
      requests.push(request);
      return summary;
    },
  });
  const messages = agent(60);
  let sent = [];
  for (let end = 4; end <= messages.length; end += 2) {
    const before = requests.length;
    const result = await compactor.compact(messages.slice(0, end));
    for (const request of requests.slice(before)) {
      // What the provider has in its cache, byte for byte.
      assert.deepEqual(bytes(request.messages), bytes(sent).slice(0, request.messages.length));
      assert.equal(request.messages.at(-1), messages[request.to - 1]);
      assert.equal(request.system, '');
      assertValid(request.messages);
    }
    sent = result.messages;
  }
  assert.ok(requests.length > 1);
});

test('a session hands out hooks as effects to those who want them', () => {
  const session = new Session({ ...summarizing, beforeBurst: true, flush: true });
  let step = plan(session, agent(20));
  assert.equal(step.effects[0].kind, 'burst');
  step = resolve(session, step.effects[0].id, { kind: 'go', pins: [1] });
  assert.equal(step.effects[0].kind, 'flush');
  step = resolve(session, step.effects[0].id, { kind: 'done' });
  assert.equal(step.outcome.compacted, true);
  assert.equal(session.summaries().length, 1);
});
