// The sans-IO loop: Session, plan, resolve, render, estimate.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { classifyError, estimate, plan, render, resolve, Session } from '../../pkg/index.js';
import { agent, assertValid, bytes, frozen, output, recorded, turn } from './chat.mjs';

const window = 16_000;

/** Performs the effects of a step as `host` says, until the outcome. */
function drain(session, step, host = () => ({ kind: 'failed', message: 'no host' })) {
  while (step.kind === 'effects') {
    let next;
    for (const effect of step.effects) next = resolve(session, effect.id, host(effect));
    step = next;
  }
  assert.equal(step.kind, 'done');
  return step.outcome;
}

test('a host drives the loop by plain objects alone', () => {
  const session = new Session({ window, preset: 'late', store: true, summarizer: true });
  const messages = agent(20);
  const stored = new Map();
  const kinds = new Set();
  const outcome = drain(session, plan(session, messages), (effect) => {
    assert.deepEqual(structuredClone(effect), effect);
    kinds.add(effect.kind);
    if (effect.kind === 'summarize') return { kind: 'failed', message: 'out of order' };
    stored.set(effect.key, effect.content);
    return { kind: 'done' };
  });
  assert.equal(outcome.reason, 'compacted');
  assert.ok(outcome.tokensAfter <= outcome.target);
  assert.ok(kinds.has('put'));
  for (const content of stored.values()) {
    assert.ok(messages.some((message) => message.content === content));
  }
  const view = render(session);
  assertValid(view);
  assert.ok(view.length <= messages.length);
});

test('plans are deterministic: the same input gives the same bytes', () => {
  const secret = '0123456789abcdef0123456789abcdef';
  const [first, second] = [0, 1].map(() => {
    const session = new Session({ window, secret });
    const outcome = drain(session, session.plan(agent(20)));
    return [JSON.stringify(outcome), ...bytes(session.render()), session.checkpoint()];
  });
  assert.deepEqual(first, second);
});

test('under the trigger the view is the transcript, object for object', () => {
  const session = new Session({ window });
  const messages = frozen(agent(3, 200));
  assert.equal(drain(session, session.plan(messages)).reason, 'under_trigger');
  const view = session.render();
  assert.notEqual(view, messages);
  assert.equal(view.length, messages.length);
  for (const [at, message] of view.entries()) assert.equal(message, messages[at]);
});

test('messages that nothing was decided on are the caller’s own objects; others are copies', () => {
  const session = new Session({ window, stages: ['clear'] });
  const messages = frozen(agent(20));
  const before = JSON.stringify(messages);
  const { decisions } = drain(session, session.plan(messages));
  const view = session.render();
  const changed = new Set(decisions.map((decision) => decision.index));
  assert.ok(changed.size > 0);
  for (const [at, message] of messages.entries()) {
    if (!changed.has(at)) assert.equal(view[at], message);
    else {
      assert.notEqual(view[at], message);
      assert.deepEqual({ ...view[at], content: message.content }, message);
    }
  }
  assert.equal(JSON.stringify(messages), before);
});

test('between bursts copies stay the same objects and the view only grows', () => {
  const session = new Session({ window });
  const messages = agent(20);
  drain(session, session.plan(messages));
  let last = session.render();
  for (let seed = 100; seed < 105; seed++) {
    for (const message of turn(seed, 100)) {
      messages.push(message);
      assert.equal(drain(session, session.plan(messages)).reason, 'under_trigger');
      const view = session.render();
      for (const [at, same] of last.entries()) assert.equal(view[at], same, `message ${at}`);
      last = view;
    }
  }
});

test('what the caller does to the array that render gave does not matter', () => {
  const session = new Session({ window });
  const messages = agent(20);
  drain(session, session.plan(messages));
  const first = session.render();
  const kept = bytes(first);
  first.length = 0;
  assert.deepEqual(bytes(session.render()), kept);
});

test('the newest message is read again each time: hosts stream into it', () => {
  const session = new Session({ window });
  const messages = agent(1, 100);
  const answer = { role: 'assistant', content: 'The' };
  messages.push(answer);
  const short = session.estimate(messages).tokens;
  answer.content += output(1, 3000);
  assert.ok(session.estimate(messages).tokens > short + 500);
  session.plan(messages);
  assert.equal(session.render().at(-1), answer);
});

test('a newest message that the view had to mend is mended anew after it changed', () => {
  const session = new Session({ window });
  const answer = { role: 'assistant', content: '' };
  const messages = [{ role: 'user', content: 'Hello?' }, answer];
  session.sync(messages);
  assertValid(session.render());
  answer.refusal = null;
  answer.name = 'helper';
  session.sync(messages);
  assert.equal(session.render()[1].name, 'helper');
  answer.content = 'Hello!';
  session.sync(messages);
  assert.equal(session.render()[1], answer);
});

test('invalidate has messages read again that were changed in place', () => {
  const session = new Session({ window });
  const messages = agent(5, 1000);
  const before = session.estimate(messages).tokens;
  messages[3].content = '';
  assert.equal(session.estimate(messages).tokens, before);
  session.invalidate(3);
  assert.ok(session.estimate(messages).tokens < before - 100);
  assert.equal(session.render().length, messages.length);
});

test('render stands between invalidate and the next sync', () => {
  const session = new Session({ window });
  const messages = agent(5, 1000);
  session.sync(messages);
  session.invalidate(0);
  assert.deepEqual(session.render(), messages);
});

test('an array that became shorter rewinds the conversation', () => {
  const session = new Session({ window });
  const messages = agent(20);
  drain(session, session.plan(messages));
  assert.equal(session.estimate(messages.slice(0, 8)).messages, 8);
  assertValid(session.render());
  const other = [...messages.slice(0, 8), { role: 'user', content: 'Look elsewhere.' }];
  drain(session, session.plan(other));
  const view = session.render();
  assertValid(view);
  assert.equal(view.at(-1), other.at(-1));
  assert.equal(session.estimate(other).messages, 9);
});

test('messages that were copied are read again, and the view holds the new objects', () => {
  const session = new Session({ window, stages: ['clear'] });
  const messages = agent(20);
  drain(session, session.plan(messages));
  const view = bytes(session.render());
  const copied = structuredClone(messages);
  const outcome = drain(session, session.plan(copied));
  assert.equal(outcome.compacted, false);
  const again = session.render();
  assert.deepEqual(bytes(again), view);
  const own = again.filter((message) => copied.includes(message));
  assert.ok(own.length > 0);
  for (const message of again) assert.ok(!messages.includes(message), 'an object of the old array');
});

test('pinned messages stay as they are', () => {
  const messages = agent(20);
  const asked = [];
  const pin = (message, index) => {
    asked.push(index);
    return message === messages[5];
  };
  const session = new Session({ window, pin });
  const { decisions } = drain(session, session.plan(messages));
  assert.ok(decisions.some((decision) => decision.index > 5));
  assert.ok(decisions.every((decision) => decision.index !== 5));
  assert.ok(session.render().includes(messages[5]));
  assert.deepEqual(asked, [...messages.keys()]);
});

test('binary data does not cross, and comes back as it was', () => {
  const part = { type: 'file', data: new Uint8Array(500_000), name: 'a.bin' };
  const buffer = { type: 'file', data: Buffer.alloc(500_000) };
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, part, buffer] }];
  const session = new Session({ window: 128_000 });
  assert.ok(session.estimate(messages).tokens < 10_000);
  assert.equal(session.render()[0].content[1].data, part.data);
});

test('objects of a class keep their class when they are copied', () => {
  class Message {
    constructor(fields) {
      Object.assign(this, fields);
    }
  }
  const messages = agent(20).map((fields) => new Message(fields));
  const session = new Session({ window, stages: ['clear'] });
  const { decisions } = drain(session, session.plan(messages));
  assert.ok(decisions.length > 0);
  for (const message of session.render()) assert.ok(message instanceof Message);
});

test('a plan replaces one that still waits; late replies are ignored', () => {
  const session = new Session({ window, store: true });
  const messages = agent(20);
  const first = session.plan(messages);
  const second = session.plan(messages);
  const [late, due] = [first, second].map((step) => step.effects[0].id);
  assert.notEqual(late, due);
  assert.deepEqual(session.resolve(late, { kind: 'done' }), { kind: 'idle' });
  session.cancel();
  assert.deepEqual(session.resolve(due, { kind: 'done' }), { kind: 'idle' });
  assert.deepEqual(session.render(), messages);
});

test('what plan decided, a second plan leaves alone', () => {
  const session = new Session({ window });
  const messages = recorded('mid');
  drain(session, session.plan(messages));
  const view = bytes(session.render());
  assert.equal(drain(session, session.plan(messages)).compacted, false);
  assert.deepEqual(bytes(session.render()), view);
});

test('estimate counts messages and tools without a session', () => {
  const messages = agent(3);
  const tools = [{ type: 'function', function: { name: 'read_file', parameters: {} } }];
  const plain = estimate(messages);
  assert.equal(plain.tools, 0);
  assert.equal(plain.window, null);
  assert.equal(plain.full, null);
  const { tokens, tools: schemas, full, usable } = estimate(messages, { tools, window });
  assert.ok(schemas > 0);
  assert.equal(tokens, plain.tokens + schemas);
  assert.equal(full, tokens / usable);
});

test('tools are read again when the array is another', () => {
  const session = new Session({ window });
  const tools = [{ name: 'a' }];
  session.setTools(tools);
  const before = session.estimate().tools;
  tools.push({ name: 'another', description: output(1, 400) });
  session.setTools(tools);
  assert.equal(session.estimate().tools, before);
  session.setTools([...tools]);
  assert.ok(session.estimate().tools > before);
  session.setTools(undefined);
  assert.equal(session.estimate().tools, 0);
});

test('a session resumes from its checkpoint with the same bytes', () => {
  const session = new Session({ window });
  const messages = recorded('large');
  drain(session, session.plan(messages));
  const resumed = Session.restore(session.checkpoint(), { window });
  drain(resumed, resumed.plan(messages));
  assert.deepEqual(bytes(resumed.render()), bytes(session.render()));
});

test('a transcript that was rewritten meanwhile is not given the decisions of the old one', () => {
  const session = new Session({ window });
  drain(session, session.plan(agent(20)));
  const other = agent(3, 100).map((message) => ({ ...message, name: 'other' }));
  const resumed = Session.restore(session.checkpoint(), { window });
  const outcome = drain(resumed, resumed.plan(other));
  assert.deepEqual(resumed.render(), other);
  assert.ok(outcome.notices.some((notice) => /dropped/.test(notice.code)));
});

test('a message under the summary that was replaced is read again within a few calls', () => {
  const role = (at) => (at % 2 === 0 ? 'user' : 'assistant');
  const messages = Array.from({ length: 5_000 }, (_, at) => {
    return { role: role(at), content: `message ${at} says that all is well` };
  });
  const session = new Session({ window, stages: ['summarize'] });
  const go = () => drain(session, session.plan(messages));
  const { decisions } = go();
  const { to } = decisions.find(({ kind }) => kind === 'covered');
  assert.ok(to > 4_000, `${to}`);
  const found = () => session.recall({ pattern: 'tide table' }).text.includes('was wrong');
  for (const at of [3_000, 1_500, 2_900]) {
    const before = messages[at];
    assert.equal(found(), false);
    messages[at] = { role: role(at), content: 'the tide table was wrong' };
    let calls = 0;
    for (; !found() && calls < 10; calls++) go();
    // 1,024 of them are looked at on each call.
    assert.ok(calls >= 1 && calls <= Math.ceil(to / 1_024), `${at}: ${calls}`);
    const view = session.render();
    assert.equal(view.at(-1), messages.at(-1));
    assert.ok(view.length < 1_000);
    messages[at] = before;
    session.invalidate(at);
    go();
  }
});

test('classifyError tells an overflow from a rate limit', () => {
  const overflow =
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
  assert.deepEqual(classifyError(400, overflow), {
    kind: 'overflow',
    limit: 8192,
    requested: 9000,
  });
  assert.equal(classifyError(429, 'Rate limit reached').kind, 'rate_limit');
  assert.equal(classifyError(undefined, '').kind, 'other');
});

test('dispose frees once; the session then refuses calls', () => {
  const session = new Session({ window });
  session.dispose();
  session.dispose();
  session[Symbol.dispose]();
  assert.throws(() => session.plan([]), { code: 'disposed' });
  assert.throws(() => session.render(), { code: 'disposed' });
});

test('the estimate is the same for messages one by one, in batches, at once, as objects or as bytes', () => {
  const transcript = recorded('mid');
  const size = (hand) => {
    const session = new Session({ window: 1_000_000, format: 'openai-chat' });
    hand(session);
    const { tokens } = session.estimate();
    session.dispose();
    return tokens;
  };
  const body = (messages) => new TextEncoder().encode(JSON.stringify({ messages }, null, 1));
  const whole = size((session) => session.sync(transcript));
  assert.ok(whole > 40_000);
  for (const steps of [[1], [2, 7, 1, 31], [100]]) {
    const sizes = { objects: 0, bytes: 0 };
    for (const kind of Object.keys(sizes)) {
      sizes[kind] = size((session) => {
        for (let end = 0, turn = 0; end < transcript.length; turn++) {
          end += steps[turn % steps.length];
          const messages = transcript.slice(0, end);
          if (kind === 'objects') session.sync(messages);
          else session.planBody(body(messages), { path: '/v1/chat/completions' });
        }
      });
    }
    assert.deepEqual(sizes, { objects: whole, bytes: whole });
  }
});
