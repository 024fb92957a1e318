// Bad input: a typed error that names the place, after which everything goes on as before.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { Compactor, estimate, Session, TidemarkError } from '../../pkg/index.js';
import { agent } from './chat.mjs';

const window = 16_000;

for (const [path, options] of [
  ['options.window', { window: '128k' }],
  ['options.window', { window: Number.NaN }],
  ['options.window', { window: -1 }],
  ['options.window', { window: 128_000n }],
  ['options.window', { window: () => 128_000 }],
  ['options.reserve', { window, reserve: -5 }],
  ['options.compactAt', { window, compactAt: Number.POSITIVE_INFINITY }],
  ['options.compactAt', { window, compactAt: 0 }],
  ['options.compactAt', { window, compactAt: 85 }],
  ['options.compactTo', { window, compactTo: 0.9 }],
  ['options.tail', { window, tail: null }],
  ['options.format', { format: 'smoke signals' }],
  ['options.stages', { stages: 'clear' }],
  ['options.stages[1]', { stages: ['clear', 'melt'] }],
  ['options.stages[0].keepLast', { stages: [{ stage: 'clear', keepLast: -1 }] }],
  ['options.stages[0].keepFirst', { stages: [{ stage: 'clear', keepFirst: 1 }] }],
  ['options.secret', { secret: 'hunter2' }],
  ['options.namespace', { namespace: '../other' }],
  ['options.summary.maxCalls', { summary: { maxCalls: 1.5 } }],
  ['options.recall.name', { recall: { name: '' } }],
  ['options.summariser', { summariser: () => '' }],
  ['options.summarizer', { summarizer: 'gpt' }],
  ['options.store.get', { store: { put() {} } }],
  ['options.store.put', { store: null }],
  ['options.pin', { pin: [1, 2] }],
  ['options.onEvent', { onEvent: true }],
]) {
  test(`an option that is wrong is named: ${path} of ${inspect(options)}`, () => {
    assert.throws(
      () => new Compactor(options),
      (error) => {
        assert.ok(error instanceof TidemarkError);
        assert.equal(error.code, 'invalid_option');
        assert.equal(error.path, path);
        assert.ok(error.message.startsWith(`${path}: `), error.message);
        return true;
      },
    );
  });
}

for (const options of [128_000, '128k', null, [], () => ({})]) {
  test(`options that are no object are refused: ${inspect(options)}`, () => {
    for (const open of [
      () => new Compactor(options),
      () => new Session(options),
      () => estimate([], options),
    ]) {
      assert.throws(open, {
        code: 'invalid_option',
        path: 'options',
        message: 'options: expected an object, such as { window: 128000 }',
      });
    }
  });
}

test('an unknown option is answered with all that are known, those of the layer too', () => {
  const known = (kind) => {
    try {
      new kind({ widow: 1 });
    } catch (error) {
      assert.equal(error.path, 'options.widow');
      return /known are (.*)$/.exec(error.message)[1].split(', ');
    }
  };
  const session = known(Session);
  for (const name of ['window', 'store', 'summarizer', 'pin']) assert.ok(session.includes(name));
  assert.deepEqual(known(Compactor), [
    ...session,
    'onEvent',
    'summarizerTimeout',
    'storeTimeout',
    'hookTimeout',
  ]);
  // Neither is an option of a stage or of summaries.
  assert.throws(
    () => new Compactor({ summary: { tokens: 1 } }),
    (error) => !/pin|onEvent/.test(error.message),
  );
});

test('undefined options are as good as none', () => {
  const options = { window: undefined, stages: undefined, summarizer: undefined, bogus: undefined };
  assert.equal(new Compactor(options).estimate().window, null);
});

const cyclic = { role: 'user' };
cyclic.content = cyclic;

for (const [what, messages, path] of [
  ['no array', { role: 'user', content: 'x' }, 'messages'],
  ['nothing', undefined, 'messages'],
  ['a text', '[]', 'messages'],
  ['a message that is null', [...agent(1), null], 'messages[4]'],
  ['a message that is a text', ['hello'], 'messages[0]'],
  ['a message without a role', [...agent(1), { content: 'x' }], 'messages[4].role'],
  ['a role that is no text', [{ role: 7, content: 'x' }], 'messages[0].role'],
  ['a hole', Array(1), 'messages[0]'],
  ['a cycle', [...agent(1), cyclic], 'messages[4]'],
  ['a bigint', [{ role: 'user', content: 1n }], 'messages[0]'],
]) {
  test(`a transcript that is wrong is refused where it is: ${what}`, async () => {
    const compactor = new Compactor({ window });
    const good = agent(3);
    const { messages: view } = await compactor.compact(good);
    const checkpoint = compactor.checkpoint();
    await assert.rejects(compactor.compact(messages), (error) => {
      assert.ok(error instanceof TidemarkError);
      assert.equal(error.code, 'invalid_transcript');
      assert.equal(error.path, path);
      return true;
    });
    // Nothing has changed.
    assert.equal(compactor.checkpoint(), checkpoint);
    assert.equal(compactor.estimate().messages, good.length);
    assert.deepEqual((await compactor.compact(good)).messages, view);
  });
}

for (const [what, json, code, path] of [
  ['no JSON', 'not a checkpoint', 'invalid_checkpoint', 'checkpoint'],
  ['nothing', undefined, 'invalid_checkpoint', 'checkpoint'],
  ['null, as some databases answer', null, 'invalid_checkpoint', 'checkpoint'],
  ['an object', { tidemark: 1 }, 'invalid_checkpoint', 'checkpoint'],
  ['JSON from elsewhere', '{"version":3,"cleared":[]}', 'invalid_checkpoint', undefined],
  ['one cut short', '{"tidemark":1,"format":"op', 'invalid_checkpoint', 'checkpoint'],
  [
    'a newer version',
    '{"tidemark":999,"format":"openai-chat"}',
    'unsupported_checkpoint',
    undefined,
  ],
]) {
  test(`a checkpoint that is wrong is refused: ${what}`, () => {
    for (const kind of [Compactor, Session]) {
      assert.throws(
        () => kind.restore(json, { window }),
        (error) => {
          assert.ok(error instanceof TidemarkError);
          assert.equal(error.code, code);
          if (path !== undefined) assert.equal(error.path, path);
          return true;
        },
      );
    }
  });
}

for (const [path, request] of [
  ['request', null],
  ['request', 5],
  ['request.max', { max: 1 }],
  ['request.tool', { tool: [] }],
  ['request.tools', { tools: 'read' }],
  ['request.tools', { tools: 'search' }],
  ['request.usage', { usage: 'many' }],
  ['request.usage', { usage: {} }],
  ['request.usage', { usage: { promptTokens: 5 } }],
  ['request.usage', { usage: { prompt_tokens: '5' } }],
  ['request.usage', { usage: { usage: { prompt_tokens: 5 } } }],
  ['request.usage.inputTokens', { usage: Number.NaN }],
  ['request.usage.inputTokens', { usage: -1 }],
  ['request.force', { force: 'yes' }],
  ['request.focus', { focus: 7 }],
]) {
  test(`a request that is wrong is refused by name: ${inspect(request)}`, async () => {
    const compactor = new Compactor({ window });
    await assert.rejects(compactor.compact(agent(2), request), { code: 'invalid_option', path });
    assert.equal((await compactor.compact(agent(2))).reason, 'under_trigger');
  });
}

test('an unknown member of a request is answered with all that are known', async () => {
  await assert.rejects(new Compactor({ window }).compact([], { bogus: 1 }), {
    message:
      'request.bogus: unknown; known are tools, system, usage, overflow, force, focus, fresh, dryRun, serverHistory, signal',
  });
  await new Compactor({ window }).compact([], { bogus: undefined });
});

test('tools that cannot be written are refused', async () => {
  const compactor = new Compactor({ window });
  const request = { tools: [cyclic] };
  await assert.rejects(compactor.compact(agent(1), request), {
    code: 'invalid_json',
    path: 'tools',
  });
});

test('a reply to no effect, or of the wrong kind, is refused and the plan goes on', () => {
  const session = new Session({ window, store: true, stages: ['offload'] });
  const { effects } = session.plan(agent(20, 12_000));
  const [{ id }] = effects;
  for (const unknown of [-1, 1.5, 1e6, Number.NaN, undefined, `${id}`]) {
    assert.throws(() => session.resolve(unknown, { kind: 'done' }), { code: 'unknown_effect' });
  }
  for (const reply of [{ kind: 'text', text: 'x' }, { kind: 'maybe' }, {}, undefined]) {
    assert.throws(() => session.resolve(id, reply), { code: 'invalid_reply' });
  }
  let step;
  for (const effect of effects) step = session.resolve(effect.id, { kind: 'done' });
  assert.equal(step.kind, 'done');
  assert.equal(step.outcome.compacted, true);
});

test('isInstance knows errors of another copy of the package', async () => {
  const copy = await import('../../pkg/errors.js?copy');
  const error = new copy.TidemarkError('internal', 'x');
  assert.ok(!(error instanceof TidemarkError));
  assert.ok(TidemarkError.isInstance(error));
  for (const other of [new Error('x'), null, undefined, 'x', {}]) {
    assert.ok(!TidemarkError.isInstance(other));
  }
});

test('after a fault inside the engine the session refuses calls and says what to do', () => {
  // The engine does not panic on any input, so the fault is put into its glue.
  const program = `
    import { Engine } from './wasm/tidemark.js';
    import { InternalError, Session } from './index.js';
    const session = new Session({ window: 16000 });
    const checkpoint = session.checkpoint();
    const { estimate } = Engine.prototype;
    Engine.prototype.estimate = () => { throw new WebAssembly.RuntimeError('unreachable'); };
    const seen = [];
    const attempt = (action) => {
      try { action(); seen.push('went well'); } catch (error) {
        seen.push([error.code, error.message, error instanceof InternalError]);
      }
    };
    attempt(() => session.estimate());
    Engine.prototype.estimate = estimate;
    attempt(() => session.estimate());
    attempt(() => session.render());
    attempt(() => session.dispose());
    attempt(() => Session.restore(checkpoint, { window: 16000 }).render());
    console.log(JSON.stringify(seen));
  `;
  const [first, second, third, ...others] = JSON.parse(inPackage(program));
  assert.equal(first[0], 'internal');
  assert.match(first[1], /restore from the last checkpoint/);
  assert.equal(first[2], true);
  assert.deepEqual(second, first);
  assert.deepEqual(third, first);
  assert.deepEqual(others, ['went well', 'went well']);
});

test('where WebAssembly may not be compiled the error says what to allow', () => {
  const program = `
    import { Compactor, init } from './index.js';
    import { readFileSync } from 'node:fs';
    const { Module } = WebAssembly;
    const module = new Module(readFileSync('./wasm/tidemark_bg.wasm'));
    WebAssembly.Module = class extends Module {
      constructor() { throw new WebAssembly.CompileError('blocked by Content Security Policy'); }
      static [Symbol.hasInstance](value) { return value instanceof Module; }
    };
    try { new Compactor({ window: 16000 }); } catch (error) { console.log(error.code, error.message); }
    init(module);
    console.log(new Compactor({ window: 16000 }).estimate().window);
  `;
  const [error, size] = inPackage(program).trim().split('\n');
  assert.match(error, /^no_wasm .*Content Security Policy.*'wasm-unsafe-eval'/);
  assert.equal(size, '16000');
});

for (const missing of ['Buffer', 'Buffer and fromBase64']) {
  test(`the engine starts without ${missing}`, () => {
    const program = `
      ${missing === 'Buffer' ? 'Uint8Array.fromBase64 ??= (text) => new Uint8Array(Buffer.from(text, "base64")); const { Buffer } = globalThis;' : 'delete Uint8Array.fromBase64;'}
      delete globalThis.Buffer;
      const { Compactor } = await import('./index.js');
      console.log(new Compactor({ window: 16000 }).estimate().window);
    `;
    assert.equal(inPackage(program).trim(), '16000');
  });
}

/** Runs a module inside the package in a process of its own. */
function inPackage(program) {
  const cwd = new URL('../../pkg/', import.meta.url);
  const options = ['--input-type=module', '--eval', program];
  return execFileSync(process.execPath, options, { cwd, encoding: 'utf8' });
}

function inspect(value) {
  return JSON.stringify(value, (_, inner) =>
    typeof inner === 'bigint' || typeof inner === 'function' || Number.isNaN(inner)
      ? String(inner)
      : inner,
  );
}
