// The component does the same, to the byte, through jco in Node and in wasmtime.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { vectorOf } from './golden.js';
import { cleanProject, goldenCases, root } from './project.mjs';

const jco = join(root, 'js/node_modules/@bytecodealliance/jco-transpile/dist/index.js');

let project;
let component;
before(async () => {
  project = await cleanProject();
  component = join(project.folder, 'node_modules/tidemark/component/tidemark.wasm');
});
after(() => project?.remove());

test('it imports nothing, and its world is the one beside it', async () => {
  const { componentWit } = await import(join(dirname(jco), 'wasm-tools.js'));
  const wit = await componentWit(readFileSync(component));
  assert.doesNotMatch(wit, /import/);
  assert.match(wit, /export tidemark:engine\/sessions@0\.1\.0;/);
  const { version } = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  const world = readFileSync(join(dirname(component), 'tidemark.wit'), 'utf8');
  assert.ok(world.startsWith(`package tidemark:engine@${version};`));
});

/** What vectorOf calls, on top of a session of the component. */
class Session {
  #inner;
  constructor(inner) {
    this.#inner = inner;
  }

  #plan() {
    const request = { force: false, fresh: false, dryRun: false, serverHistory: false };
    return fromWit(this.#inner.plan(request));
  }

  plan(messages) {
    this.#inner.ingest(0, JSON.stringify(messages), new Uint32Array());
    return this.#plan();
  }

  planBody(body) {
    this.body = body;
    this.#inner.ingestBody(body, undefined);
    return this.#plan();
  }

  resolve(id, { kind, text }) {
    return fromWit(this.#inner.resolve(id, { tag: kind, val: text }));
  }

  recall(args) {
    return { text: this.#inner.recall(JSON.stringify(args)).val };
  }

  renderJson() {
    return this.#inner.render();
  }

  renderBody() {
    return this.#inner.renderBody() ?? this.body;
  }

  checkpoint() {
    return this.#inner.checkpoint();
  }

  dispose() {
    this.#inner[Symbol.dispose]();
  }
}

function fromWit({ tag, val }) {
  if (tag === 'done') {
    const decisions = val.decisions.map(({ reference: ref, ...decision }) => ({
      ...decision,
      ref,
    }));
    return { kind: 'done', outcome: { ...val, decisions } };
  }
  const effects = val.map(({ tag, val }) => {
    if (tag === 'put') return { kind: tag, ...val };
    const { id, system, prompt, maxTokens, first, end, attempt } = val;
    return { kind: tag, id, system, prompt, maxTokens, from: first, to: end, attempt };
  });
  return { kind: tag, effects };
}

test('through jco, in Node', async (t) => {
  const { transpileBytes } = await import(pathToFileURL(jco));
  const { files } = await transpileBytes(readFileSync(component), { name: 'tidemark' });
  const folder = join(project.folder, 'transpiled');
  for (const [name, contents] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), contents);
  }
  const { sessions } = await import(pathToFileURL(join(folder, 'tidemark.js')));
  const { vectors, transcripts } = goldenCases();
  for (const vector of vectors) {
    const open = (options) => new Session(sessions.Session.open(JSON.stringify(options)));
    assert.deepEqual(await vectorOf(open, vector, transcripts[vector.file]), vector);
  }
  t.diagnostic(`${vectors.length} vectors`);

  const { secret } = vectors[0].options;
  const refused = (action) => {
    try {
      action();
    } catch (error) {
      const payload = error.payload ?? error;
      if (payload.path === undefined) throw error;
      return [payload.code, payload.path];
    }
    return 'taken';
  };
  const { open, restore } = sessions.Session;
  const session = open(JSON.stringify({ window: 8000, secret }));
  assert.deepEqual(
    refused(() => open('{"window":8000}')),
    ['invalid_option', 'options.secret'],
  );
  assert.deepEqual(refused(() => restore(`{"secret":"${secret}"}`, 'x'))[0], 'invalid_checkpoint');
  assert.deepEqual(
    refused(() => session.ingest(0, '[1]', new Uint32Array())),
    ['invalid_transcript', 'messages[0]'],
  );
  assert.deepEqual(refused(() => session.resolve(7, { tag: 'done' }))[0], 'unknown_effect');
  assert.equal(session.estimate().budget.window, 8000);
  assert.equal(session.recallTool(), undefined);
  assert.equal(session.stats().bursts, 0);
  assert.deepEqual(session.summaries(), []);
  assert.deepEqual(sessions.classify(429, 'Rate limit reached').tag, 'rate-limit');

  const hooked = open(JSON.stringify({ window: 4000, secret, beforeBurst: true, flush: true }));
  const text = 'word '.repeat(600);
  const roles = Array.from({ length: 12 }, (_, at) => (at % 2 ? 'assistant' : 'user'));
  const messages = roles.map((role, at) => ({ role, content: `${at} ${text}` }));
  hooked.ingest(0, JSON.stringify(messages), new Uint32Array());
  const request = { force: false, fresh: false, dryRun: false, serverHistory: false };
  let step = hooked.plan(request);
  assert.deepEqual(
    [step.tag, step.val[0].tag, step.val[0].val.cause],
    ['effects', 'burst', 'size'],
  );
  const go = { veto: false, pins: new Uint32Array([2]) };
  step = hooked.resolve(step.val[0].val.id, { tag: 'go', val: go });
  const flushed = [];
  while (step.tag === 'effects') {
    const [{ tag, val }] = step.val;
    flushed.push(tag);
    step = hooked.resolve(val.id, { tag: 'done' });
  }
  assert.ok(flushed.length > 0 && flushed.every((tag) => tag === 'flush'), `${flushed}`);
  assert.equal(step.val.reason, 'compacted');
  assert.ok(step.val.cache.prefixBytes > 0);
  assert.ok(hooked.render().includes(JSON.stringify(messages[2])), 'what the hook pinned stands');
  assert.equal(hooked.summaries().length, 1);

  const stages = [{ stage: 'custom', name: 'own' }];
  const staged = open(JSON.stringify({ window: 4000, secret, stages }));
  staged.ingest(0, JSON.stringify(messages), new Uint32Array());
  const [{ tag, val: decide }] = staged.plan(request).val;
  assert.deepEqual([tag, decide.stage], ['decide', 'own']);
  const { first, end } = decide.units.find((unit) => !unit.pinned && !unit.protected);
  assert.ok(staged.propose(decide.id, { tag: 'drop', val: [first, end] }) > 0);
  const beyond = { tag: 'clear', val: [99, 0] };
  assert.equal(refused(() => staged.propose(decide.id, beyond))[0], 'invalid_decision');
  const decided = staged.resolve(decide.id, { tag: 'done' }).val.decisions;
  assert.deepEqual(
    decided.map(({ stage, kind }) => [stage, kind]),
    [['own', 'dropped']],
  );

  const body = "This model's maximum context length is 8192 tokens.";
  assert.deepEqual(sessions.classify(400, body), { tag: 'overflow', val: [8192, undefined] });
});

test('in wasmtime, from Python', async () => {
  const python = process.env.TIDEMARK_WASMTIME;
  assert.ok(python, 'run it by `npm --prefix js run runtimes`, which installs wasmtime');
  const { vectors, transcripts } = goldenCases();
  const texts = Object.entries(transcripts).map(([file, messages]) => [
    file,
    messages.map((message) => JSON.stringify(message)),
  ]);
  const child = spawn(python, [join(root, 'tests/runtimes/component.py'), component], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify({ vectors, transcripts: Object.fromEntries(texts) }));
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text;
  });
  assert.equal(await new Promise((resolve) => child.on('close', resolve)), 0);
  assert.deepEqual(JSON.parse(printed), vectors);
});
