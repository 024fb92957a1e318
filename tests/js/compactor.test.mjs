// Compactor: the whole loop with the host's summarizer, store, signal and listeners.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { Compactor } from '../../pkg/index.js';
import { MemoryStore } from '../../pkg/stores/memory.js';
import { agent, assertValid, bytes, frozen, output, recorded, summary, turn } from './chat.mjs';

const window = 16_000;
/** A pipeline that asks the summarizer at once. */
const summarizing = { window, stages: ['summarize', 'drop', 'elide'] };

/** A promise and what settles it. */
function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

test('under the trigger the view is the transcript', async () => {
  const compactor = new Compactor({ window });
  const messages = frozen(agent(3, 200));
  const result = await compactor.compact(messages);
  assert.equal(result.compacted, false);
  assert.equal(result.reason, 'under_trigger');
  assert.equal(result.notice, null);
  assert.equal(result.tokensBefore, result.tokensAfter);
  assert.ok(result.fits);
  for (const [at, message] of result.messages.entries()) assert.equal(message, messages[at]);
});

test('over the trigger the view shrinks to the target; the transcript is not touched', async () => {
  const messages = frozen(agent(20));
  const before = JSON.stringify(messages);
  const result = await new Compactor({ window, preset: 'late' }).compact(messages);
  assert.equal(result.reason, 'compacted');
  assert.ok(result.compacted && result.fits);
  assert.ok(result.tokensBefore > result.trigger);
  assert.ok(result.tokensAfter <= result.target);
  assert.ok(result.stages.length > 0 && result.decisions.length > 0);
  assertValid(result.messages);
  assert.equal(result.messages[0], messages[0]);
  assert.equal(result.messages.at(-1), messages.at(-1));
  assert.equal(JSON.stringify(messages), before);
});

for (const name of ['small', 'mid', 'large']) {
  test(`the ${name} transcript, call by call: valid views, within budget, stable between bursts`, async () => {
    const messages = frozen(recorded(name));
    for (const size of [8_000, 32_000]) {
      const compactor = new Compactor({ window: size, store: new MemoryStore() });
      let last = [];
      let whole;
      for (let end = 1; end <= messages.length; end++) {
        if (end < messages.length && messages[end].role !== 'assistant') continue;
        const result = await compactor.compact(messages.slice(0, end));
        const view = bytes(result.messages);
        assertValid(result.messages);
        assert.ok(result.fits, `${result.tokensAfter} of ${result.usable} at ${end}`);
        if (!result.compacted) assert.deepEqual(view.slice(0, last.length), last);
        // In the newest batch of calls some may still wait; what stands for them comes later.
        const batch = result.messages.findLastIndex((message) => message.role !== 'tool');
        last = view.slice(0, batch + 1);
        whole = view;
      }
      const resumed = Compactor.restore(compactor.checkpoint(), { window: size });
      assert.deepEqual(bytes((await resumed.compact(messages)).messages), whole);
    }
  });
}

test('the summarizer is given a prompt and its limits, and its text stands in the view', async () => {
  const requests = [];
  const summarizer = (request, context) => {
    requests.push([request, context]);
    return summary;
  };
  const compactor = new Compactor({ ...summarizing, summarizer });
  const result = await compactor.compact(agent(20));
  assert.equal(result.summary.by, 'host');
  assert.deepEqual(result.failures, []);
  assert.ok(JSON.stringify(result.messages).includes('The build of part-1 is slow.'));
  assertValid(result.messages);
  for (const [request, context] of requests) {
    assert.deepEqual(Object.keys(request).sort(), [
      'attempt',
      'from',
      'maxTokens',
      'prompt',
      'system',
      'to',
    ]);
    assert.equal(typeof request.prompt, 'string');
    assert.ok(request.maxTokens >= 64);
    assert.deepEqual(Object.keys(context), ['signal']);
    assert.equal(context.signal.aborted, false);
  }
});

for (const [how, summarizer] of Object.entries({
  throws() {
    throw new Error('no credit');
  },
  rejects: () => Promise.reject('no credit'),
  'returns no string': () => ({ text: summary }),
  'returns nothing': () => undefined,
  'returns null': async () => null,
  'returns a blank': () => '  \n',
})) {
  test(`a summarizer that ${how} is reported, and the local one takes its place`, async () => {
    const compactor = new Compactor({ ...summarizing, summarizer });
    const result = await compactor.compact(agent(20));
    assert.equal(result.summary.by, 'local');
    assert.ok(result.fits);
    assertValid(result.messages);
    assert.ok(result.failures.length > 0);
    for (const { effect, message } of result.failures) {
      assert.equal(effect, 'summarize');
      assert.equal(typeof message, 'string');
    }
    if (how === 'throws') assert.equal(result.failures[0].message, 'no credit');
    if (how === 'returns null') assert.match(result.failures[0].message, /returned null, not/);
    // The session goes on.
    assert.equal((await compactor.compact(agent(20))).compacted, false);
  });
}

test('a store that fails is reported; the budget holds, and nothing points to what it lacks', async () => {
  const store = {
    put: () => Promise.reject(new Error('disk full')),
    get: () => Promise.reject(new Error('disk full')),
  };
  const result = await new Compactor({ window, store }).compact(agent(20, 12_000));
  assert.ok(result.fits);
  assert.deepEqual(new Set(result.failures.map((failure) => failure.effect)), new Set(['put']));
  assert.equal(result.failures[0].message, 'disk full');
  assert.ok(result.decisions.every((decision) => decision.kind !== 'offloaded'));
});

test('effects of one step run side by side, and their order of arrival decides nothing', async () => {
  const secret = '0'.repeat(32);
  const run = async (delays) => {
    let running = 0;
    let most = 0;
    const store = {
      put: async () => {
        most = Math.max(most, ++running);
        for (let left = delays(running); left > 0; left--) await tick();
        running--;
      },
      get: () => undefined,
    };
    const compactor = new Compactor({ window, secret, store });
    const result = await compactor.compact(agent(12, 12_000));
    return { most, decided: JSON.stringify([result.decisions, result.messages]) };
  };
  const rising = await run((at) => at);
  const falling = await run((at) => 20 - at);
  assert.ok(rising.most > 1);
  assert.equal(rising.decided, falling.decided);
});

test('calls wait for each other', async () => {
  const gate = deferred();
  let calls = 0;
  const summarizer = async () => {
    calls++;
    await gate.promise;
    return summary;
  };
  const compactor = new Compactor({ ...summarizing, summarizer });
  const messages = agent(20);
  const order = [];
  const first = compactor.compact(messages).then((result) => order.push(1) && result);
  const second = compactor.compact([...messages, ...turn(90, 100)]).then((result) => {
    order.push(2);
    return result;
  });
  await tick();
  assert.equal(calls, 1);
  assert.deepEqual(order, []);
  gate.resolve();
  assert.equal((await first).compacted, true);
  assert.equal((await second).compacted, false);
  assert.deepEqual(order, [1, 2]);
  assert.equal((await second).messages.length, (await first).messages.length + 2);
});

test('a call that fails does not hold up the next', async () => {
  const compactor = new Compactor({ window });
  const bad = compactor.compact([{ content: 'no role' }]);
  const good = compactor.compact(agent(3));
  await assert.rejects(bad, { code: 'invalid_transcript' });
  assert.equal((await good).messages.length, 8);
});

test('abort rejects with the signal’s reason at once and leaves the session as it was', async () => {
  const started = deferred();
  let seen;
  const summarizer = (_request, { signal }) => {
    seen = signal;
    started.resolve();
    return new Promise(() => {});
  };
  const compactor = new Compactor({ ...summarizing, summarizer });
  const messages = agent(20);
  const controller = new AbortController();
  const before = compactor.checkpoint();
  const call = compactor.compact(messages, { signal: controller.signal });
  await started.promise;
  controller.abort(new Error('the user left'));
  await assert.rejects(call, { message: 'the user left' });
  assert.equal(seen.reason, controller.signal.reason);
  assert.equal(JSON.parse(compactor.checkpoint()).summary, undefined);
  assert.equal(JSON.parse(before).summary, undefined);
  await assert.rejects(compactor.compact(messages, { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
});

test('a call that waits for another is aborted without waiting', async () => {
  const gate = deferred();
  const summarizer = async () => {
    await gate.promise;
    return summary;
  };
  const compactor = new Compactor({ ...summarizing, summarizer });
  const first = compactor.compact(agent(20));
  const controller = new AbortController();
  const second = compactor.compact(agent(20), { signal: controller.signal });
  controller.abort();
  await assert.rejects(second, { name: 'AbortError' });
  const third = compactor.compact(agent(20));
  gate.resolve();
  assert.equal((await first).summary.by, 'host');
  assert.equal((await third).messages.length, (await first).messages.length);
});

test('after an abort a late answer of the summarizer changes nothing', async () => {
  const gate = deferred();
  const compactor = new Compactor({ ...summarizing, summarizer: () => gate.promise });
  const controller = new AbortController();
  const call = compactor.compact(agent(20), { signal: controller.signal });
  await tick();
  controller.abort();
  await assert.rejects(call);
  gate.resolve(summary);
  await tick();
  assert.equal(JSON.parse(compactor.checkpoint()).summary, undefined);
});

test('listeners hear a burst in order, until they stop', async () => {
  const heard = [];
  const all = [];
  const compactor = new Compactor({
    ...summarizing,
    summarizer: () => summary,
    onEvent: (event) => all.push(event.type),
  });
  const types = ['burst:before', 'burst:after', 'effect:start', 'effect:end', 'notice'];
  const stops = types.map((type) => compactor.on(type, (event) => heard.push(event)));
  const result = await compactor.compact(agent(20));
  assert.deepEqual(
    heard.map((event) => event.type),
    all,
  );
  assert.equal(heard[0].type, 'burst:before');
  assert.equal(heard[0].effects[0].kind, 'summarize');
  const [start, end] = ['effect:start', 'effect:end'].map((type) => all.indexOf(type));
  assert.ok(0 < start && start < end);
  assert.equal(heard[end].effect, heard[start].effect);
  assert.deepEqual(heard[end].reply, { kind: 'text', text: summary });
  const { messages, notice, ...outcome } = result;
  assert.deepEqual(heard.find((event) => event.type === 'burst:after').outcome, outcome);
  for (const stop of stops) stop();
  const before = heard.length;
  await compactor.compact(agent(40));
  assert.equal(heard.length, before);
  assert.ok(all.length > before);
});

test('a burst that needs no host is announced too; a plan without one is not', async () => {
  const heard = [];
  const compactor = new Compactor({
    window,
    stages: ['clear'],
    onEvent: (event) => heard.push(event),
  });
  await compactor.compact(agent(2, 100));
  assert.deepEqual(heard, []);
  await compactor.compact(agent(20));
  assert.deepEqual(
    heard.map((event) => event.type),
    ['burst:before', 'burst:after'],
  );
  assert.deepEqual(heard[0].effects, []);
});

test('listeners that fail do not disturb the compaction', async () => {
  const compactor = new Compactor({
    window,
    onEvent: () => {
      throw new Error('listener');
    },
  });
  compactor.on('burst:after', async () => {
    throw new Error('later');
  });
  assert.equal((await compactor.compact(agent(20))).compacted, true);
  await tick();
});

test('an unknown window is a visible notice, not a guess', async () => {
  const notices = [];
  const compactor = new Compactor();
  compactor.on('notice', ({ notice }) => notices.push(notice.code));
  const result = await compactor.compact(agent(20));
  assert.equal(result.reason, 'unknown_window');
  assert.equal(result.window, null);
  assert.match(result.notice, /window/);
  assert.deepEqual(notices, ['unknown_window']);
});

const refused = {
  message:
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 20000 tokens.",
  type: 'invalid_request_error',
  code: 'context_length_exceeded',
};
for (const [shape, overflow] of Object.entries({
  'an error of the openai package': Object.assign(new Error(`400 ${refused.message}`), {
    status: 400,
    error: refused,
  }),
  'an error with a response body': {
    statusCode: 400,
    responseBody: JSON.stringify({ error: refused }),
  },
  'a parsed body': { error: refused },
  'a plain error': new Error(refused.message),
  'a text': refused.message,
})) {
  test(`overflow as ${shape} teaches the window and compacts below it`, async () => {
    const compactor = new Compactor();
    const messages = agent(20);
    await compactor.compact(messages);
    const result = await compactor.compact(messages, { overflow });
    assert.equal(result.overflow, true);
    assert.equal(result.window, 8192);
    assert.equal(result.reason, 'compacted');
    assert.ok(result.fits);
    assert.ok(result.tokensAfter < 8192);
  });
}

test('a rate limit, and an error that cannot be read, are no overflow', async () => {
  const compactor = new Compactor({ window });
  const messages = agent(20);
  const circular = {};
  circular.self = circular;
  for (const [overflow, reason] of [
    [{ status: 429, message: 'Rate limit reached for requests' }, 'rate_limit'],
    [circular, 'not_an_overflow'],
    [{ error: circular }, 'not_an_overflow'],
    [Symbol('what'), 'not_an_overflow'],
    [false, 'not_an_overflow'],
  ]) {
    const result = await compactor.compact(messages, { overflow });
    assert.equal(result.reason, reason);
    assert.equal(result.compacted, false);
  }
});

for (const [shape, usage] of Object.entries({
  'a number': 3000,
  '{ inputTokens }': { inputTokens: 3000 },
  '{ prompt_tokens }': { prompt_tokens: 3000, completion_tokens: 10, total_tokens: 3010 },
  '{ input_tokens } with cached ones apart': {
    input_tokens: 1000,
    cache_read_input_tokens: 1500,
    cache_creation_input_tokens: 500,
    output_tokens: 10,
  },
  '{ input_tokens } without a cache': {
    input_tokens: 3000,
    cache_read_input_tokens: null,
    cache_creation_input_tokens: null,
  },
})) {
  test(`usage as ${shape} corrects the estimate`, async () => {
    const compactor = new Compactor({ window });
    const messages = agent(3, 2000);
    const { tokensAfter } = await compactor.compact(messages);
    await compactor.compact(messages, { usage });
    const { ratio } = compactor.estimate();
    const [wanted] = [3000 / tokensAfter];
    assert.ok(Math.abs(ratio - wanted) < Math.abs(1 - wanted), `${ratio} towards ${wanted}`);
  });
}

test('usage that the provider left out is no usage', async () => {
  const compactor = new Compactor({ window });
  for (const usage of [undefined, null, { inputTokens: undefined }]) {
    await compactor.compact(agent(3), { usage });
    assert.equal(compactor.estimate().ratio, 1);
  }
});

test('tools count, and are read once', async () => {
  let reads = 0;
  const schema = { name: 'search', description: output(1, 2000) };
  const tools = [{ type: 'function', function: { toJSON: () => ++reads && schema } }];
  const compactor = new Compactor({ window });
  const plain = (await compactor.compact(agent(3))).tokensAfter;
  const first = (await compactor.compact(agent(3), { tools })).tokensAfter;
  await compactor.compact(agent(3), { tools });
  assert.ok(first > plain + 300);
  assert.equal(reads, 1);
  assert.equal((await compactor.compact(agent(3))).tokensAfter, plain);
});

test('force compacts a view that is small enough', async () => {
  const messages = agent(6);
  const compactor = new Compactor({ window: 100_000, tail: 1000 });
  assert.equal((await compactor.compact(messages)).compacted, false);
  const result = await compactor.compact(messages, { force: true });
  assert.equal(result.compacted, true);
  assert.ok(result.tokensAfter < result.tokensBefore);
  assertValid(result.messages);
});

test('focus reaches the summarizer', async () => {
  const prompts = [];
  const summarizer = ({ system, prompt }) => {
    prompts.push(system + prompt);
    return summary;
  };
  const compactor = new Compactor({ ...summarizing, summarizer });
  await compactor.compact(agent(20), { focus: 'the linker flags' });
  assert.ok(prompts[0].includes('the linker flags'));
});

test('a compactor resumes from its checkpoint, summary and all', async () => {
  const options = { ...summarizing, summarizer: () => summary };
  const compactor = new Compactor(options);
  const messages = agent(20);
  const { messages: view } = await compactor.compact(messages);
  let calls = 0;
  const resumed = Compactor.restore(compactor.checkpoint(), {
    ...options,
    summarizer: () => ++calls && summary,
  });
  assert.equal(resumed.checkpoint(), compactor.checkpoint());
  const again = await resumed.compact(structuredClone(messages));
  assert.equal(again.compacted, false);
  assert.equal(calls, 0);
  assert.deepEqual(bytes(again.messages), bytes(view));
});

test('dispose may be called twice; the compactor then refuses', async () => {
  const compactor = new Compactor({ window });
  compactor.dispose();
  compactor.dispose();
  await assert.rejects(compactor.compact(agent(1)), { code: 'disposed' });
});
