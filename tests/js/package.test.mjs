// The package as a user gets it: packed, installed in a project of its own, used
// as ESM, through require(), by two strict TypeScript consumers, and as the READMEs show it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'tidemark-package-'));
after(() => rmSync(project, { recursive: true, force: true }));

// The npm that started the tests tells every npm below it to work in js/ too.
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_config_(local_|global_)?prefix$/.test(name),
  ),
);

/** Runs a program in the project; its output is in the error when it fails. */
function run(command, args, cwd = project) {
  try {
    return execFileSync(command, args, { cwd, env, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    throw new Error(`${command} ${args.join(' ')}\n${error.stdout}${error.stderr}`);
  }
}

function write(name, text) {
  const file = join(project, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
}

const use = `
const messages = [
  { role: 'system', content: 'You are terse.' },
  { role: 'user', content: 'Which port does the service listen on?' },
  { role: 'assistant', content: '8443.' },
];
async function main() {
  const compactor = new Compactor({ window: 8000 });
  const result = await compactor.compact(messages);
  console.log(JSON.stringify([result.messages, result.compacted, result.fits]));
}
main();
`;
const expected = [
  [
    { role: 'system', content: 'You are terse.' },
    { role: 'user', content: 'Which port does the service listen on?' },
    { role: 'assistant', content: '8443.' },
  ],
  false,
  true,
];

let packed;
before(() => {
  const pkg = join(root, 'pkg');
  const answer = run('npm', ['pack', '--json', '--pack-destination', project], pkg);
  [packed] = JSON.parse(answer);
  write('package.json', '{ "name": "consumer", "private": true, "type": "module" }');
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${packed.filename}`]);
});

test('the tarball holds what the exports name, and nothing else', (t) => {
  const files = packed.files.map((file) => file.path).sort();
  const manifest = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  t.diagnostic(
    `${files.length} files, ${packed.size} bytes packed, ${packed.unpackedSize} unpacked`,
  );

  for (const name of ['LICENSE', 'README.md', 'package.json'])
    assert.ok(files.includes(name), name);
  const named = { ...manifest.exports, ...manifest.imports, main: manifest.main };
  for (const [name, entry] of Object.entries(named)) {
    for (const target of targetsOf(entry)) {
      assert.ok(files.includes(target.replace('./', '')), `${name} names ${target}`);
    }
  }

  const modules = files.filter((file) => file.endsWith('.js') && !file.startsWith('cli/'));
  const allowed = new Set([
    'LICENSE',
    'README.md',
    'CLI.md',
    'package.json',
    'cjs/package.json',
    'cjs/wasm/index.d.ts',
    'wasm/index.d.ts',
    'wasm/tidemark_bg.wasm',
    'cli/LICENSES.txt',
    'cli/main.js',
    'cli/report.html',
    'component/tidemark.wasm',
    'component/tidemark.wit',
    ...modules.flatMap((file) => [file, file.replace(/js$/, 'd.ts')]),
  ]);
  assert.deepEqual(
    new Set(files),
    allowed,
    'modules with their declarations, the wasm and the component',
  );
});

/** The files that an entry of a manifest leads to, under whichever conditions. */
function targetsOf(entry) {
  return typeof entry === 'string' ? [entry] : Object.values(entry).flatMap(targetsOf);
}

test('in each entry of the exports the types come first', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  const look = (entry) => {
    if (typeof entry === 'string') return;
    if ('types' in entry) assert.equal(Object.keys(entry)[0], 'types');
    for (const inner of Object.values(entry)) look(inner);
  };
  for (const entry of Object.values(manifest.exports)) look(entry);
});

test('the package has no dependency and runs no script', () => {
  const manifest = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  for (const key of ['dependencies', 'peerDependencies', 'optionalDependencies', 'scripts']) {
    assert.equal(manifest[key], undefined, key);
  }
});

test('no path of the machine that built it is inside', () => {
  const home = process.env.CARGO_HOME ?? join(process.env.HOME ?? '/', '.cargo');
  for (const { path } of packed.files) {
    const bytes = readFileSync(join(root, 'pkg', path));
    for (const place of [home, root]) assert.ok(!bytes.includes(place), `${path} names ${place}`);
  }
});

test('an ES module imports it', () => {
  write('use.mjs', `import { Compactor } from 'tidemark';\n${use}`);
  assert.deepEqual(JSON.parse(run(process.execPath, ['use.mjs'])), expected);
});

test('a CommonJS module requires it', () => {
  write('use.cjs', `const { Compactor } = require('tidemark');\n${use}`);
  assert.deepEqual(JSON.parse(run(process.execPath, ['use.cjs'])), expected);
});

test('importing it starts nothing: no wasm is compiled before first use', () => {
  const program = `
    const { Module, Instance } = WebAssembly;
    let started = 0;
    for (const [name, base] of Object.entries({ Module, Instance })) {
      WebAssembly[name] = class extends base { constructor(...args) { super(...args); started++; } };
    }
    const { Compactor } = await import('tidemark');
    const imported = started;
    new Compactor({ window: 8000 });
    console.log(JSON.stringify([imported, started > 0]));
  `;
  write('lazy.mjs', program);
  assert.deepEqual(JSON.parse(run(process.execPath, ['lazy.mjs'])), [0, true]);
});

test('the command line runs, and says its version', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  assert.equal(run('npx', ['--no-install', 'tidemark', '--version']).trim(), version);
  write('chat.json', '[{"role":"user","content":"Which port?"}]');
  assert.match(run('npx', ['--no-install', 'tidemark', 'inspect', 'chat.json']), /1 message/);
});

test('a bundler that goes by sideEffects keeps what starts the engine, and only that', () => {
  const { sideEffects } = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  const pattern = (glob) => new RegExp(`^${glob.replaceAll('.', '\\.').replace('*', '[^/]*')}$`);
  for (const { path } of packed.files.filter((file) => file.path.endsWith('.js'))) {
    const text = readFileSync(join(root, 'pkg', path), 'utf8');
    // A module has one when it calls something on its own, or is there to load one that does.
    const entry = /^(import |var \w+ = require\()['"].*(#start|start\/)/m.test(text);
    const has = entry || /^(\(0, \w+\.)?provide\)?\(/m.test(text);
    const told = sideEffects.some((glob) => pattern(glob).test(`./${path}`));
    assert.equal(told, has, path);
  }
});

test('slim holds no WebAssembly and says so until it is given some', () => {
  const program = `
    import { init, Session } from 'tidemark/slim';
    import { readFileSync } from 'node:fs';
    try { new Session(); } catch (error) { console.log(error.code); }
    init(readFileSync(new URL(import.meta.resolve('tidemark/wasm'))));
    console.log(new Session({ window: 8000 }).estimate().window);
  `;
  write('slim.mjs', program);
  assert.equal(run(process.execPath, ['slim.mjs']), 'no_wasm\n8000\n');
});

test('every subpath resolves', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'pkg/package.json'), 'utf8'));
  // Of the worker's side only workers can be.
  const modules = Object.keys(exports).filter((name) => !/wasm|component|engine|json$/.test(name));
  const names = modules.map((name) => name.replace(/^\./, 'tidemark'));
  write('subpaths.cjs', names.map((name) => `require('${name}');`).join('\n'));
  run(process.execPath, ['subpaths.cjs']);
  const program = `
    ${names.map((name) => `import '${name}';`).join('\n')}
    import { readFileSync } from 'node:fs';
    const wasm = readFileSync(new URL(import.meta.resolve('tidemark/wasm')));
    console.log(WebAssembly.validate(wasm));
  `;
  write('subpaths.mjs', program);
  assert.equal(run(process.execPath, ['subpaths.mjs']).trim(), 'true');
});

// Neither has the other's globals: a server without a DOM, a browser without Node.
const consumers = {
  node16: {
    module: 'node16',
    moduleResolution: 'node16',
    lib: ['es2023'],
    types: ['node'],
    typeRoots: [join(root, 'js/node_modules/@types')],
  },
  nodenext: {
    module: 'nodenext',
    moduleResolution: 'nodenext',
    lib: ['es2023'],
    types: ['node'],
    typeRoots: [join(root, 'js/node_modules/@types')],
  },
  bundler: {
    module: 'esnext',
    moduleResolution: 'bundler',
    lib: ['es2023', 'dom'],
    types: [],
  },
};
const storeNames = [
  'cache',
  'checkpoints',
  'cloudflare',
  'encrypted',
  'file',
  'indexeddb',
  'memory',
  'unstorage',
];
const workerUse = `const remote = await WorkerCompactor.open(new Worker('engine.js'), { window: 8000 });
const same: number = (await remote.compact(messages)).messages.length;
// @ts-expect-error: a function cannot go to a worker
void WorkerCompactor.open(new Worker('engine.js'), { tokenizer: () => same });
`;
for (const [name, options] of Object.entries(consumers)) {
  test(`a strict TypeScript consumer compiles, moduleResolution ${name}`, () => {
    // Only that one needs Node.
    const stores = storeNames.filter((store) => name !== 'bundler' || store !== 'file');
    const imports = stores.map(
      (store) => `import * as ${store} from 'tidemark/stores/${store}';\n`,
    );
    const program = `import { Compactor } from 'tidemark';
import { prepareStep } from 'tidemark/ai-sdk';
import { replay } from 'tidemark/replay';
import { WorkerCompactor } from 'tidemark/worker';
${imports.join('')}
const messages = [
  { role: 'system', content: 'You are terse.' },
  { role: 'user', content: 'Which port does the service listen on?' },
];
const compactor = new Compactor({ window: 8000 });
const result = await compactor.compact(messages);
const length: number = result.messages.length;
const compacted: boolean = result.compacted;
const fits: boolean = result.fits;
${name === 'bundler' ? workerUse : ''}// @ts-expect-error: the window is a number
new Compactor({ window: 'large' });
export { compacted, fits, length, prepareStep, replay, WorkerCompactor, ${stores.join(', ')} };
`;
    write(`${name}/use.ts`, program);
    compile(name, 'use.ts', { noEmit: true, ...options });
  });
}

test('a strict CommonJS consumer in TypeScript compiles', () => {
  const program = `import { Compactor, type CompactResult } from 'tidemark';
import { MemoryStore } from 'tidemark/stores/memory';
export function main(): Promise<CompactResult> {
  return new Compactor({ window: 8000, store: new MemoryStore() }).compact([{ role: 'user' }]);
}
// @ts-expect-error: the window is a number
new Compactor({ window: 'large' });
`;
  write('common/use.cts', program);
  // Verbatim module syntax would forbid `import` there.
  compile('common', 'use.cts', { noEmit: true, ...consumers.node16, verbatimModuleSyntax: false });
});

/** Compiles a file in a folder of the project, and what it imports. */
function compile(folder, file, options) {
  const compilerOptions = {
    target: 'es2022',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    skipLibCheck: false,
    ...options,
  };
  write(`${folder}/tsconfig.json`, JSON.stringify({ compilerOptions, files: [file] }));
  run(join(root, 'js/node_modules/.bin/tsc'), ['-p', join(project, folder)]);
}

/** The samples of a README in one function, with the types that it tells TypeScript users to add. */
function samples(readme) {
  const text = readFileSync(join(root, readme), 'utf8');
  const blocks = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block);
  const imports = blocks.flatMap((block) => block.match(/^import .*$/gm) ?? []);
  const [first, ...others] = blocks.map((block) =>
    block
      .replace(/^import .*$/gm, '')
      .replace('new Session(', 'new Session<Message>(')
      .replace('send(messages) {', 'send(messages: Message[]) {')
      .replace('perform(effect) {', 'perform(effect: Effect): Reply {'),
  );
  return `${imports.join('\n')}
import type { Effect, Reply } from 'tidemark';
import {
  call, callModel, load, model, openai, options, requests, save, send, sent, summarize, tools,
  tokenizer, transcript, type Completion, type Message,
} from './caller.js';

let response: Completion | undefined;
async function main() {
${first}
${readme === 'README.md' ? '' : 'await save(compactor.checkpoint());'}
${others.map((block) => `{\n${block}\n}`).join('\n')}
}
await main();
console.log(JSON.stringify({
  offered: requests.map((request) => request.tools?.length),
  lengths: [...requests.map((request) => request.messages), ...sent].map(
    (messages) => JSON.stringify(messages).length,
  ),
  answer: transcript.at(-1),
}));
export { call, callModel, load, model, openai, options, response, save, send, summarize, tokenizer,
  tools };
`;
}

for (const readme of ['README.md', 'pkg-template/README.md']) {
  test(`the samples of ${readme} compile with the types of the openai package, and run`, () => {
    const folder = readme.replace('/README.md', '');
    write(`${folder}/samples.ts`, samples(readme));
    cpSync(join(root, 'tests/js/caller.ts'), join(project, folder, 'caller.ts'));
    compile(folder, 'samples.ts', consumers.nodenext);
    const printed = run(process.execPath, [join(folder, 'samples.js')]);
    const { offered, lengths, answer } = JSON.parse(printed.trim().split('\n').at(-1));
    const whole = readme === 'README.md';
    // The first request, the one that is refused, the retry, and that of the session.
    assert.deepEqual(offered, whole ? [] : [2, 2, 2, 2], 'each offers the recall tool');
    assert.equal(lengths.length, whole ? 1 : 4);
    for (const length of lengths) assert.ok(length > 0 && length < 500_000, `${length}`);
    if (!whole) {
      assert.ok(lengths[2] < lengths[1], 'the retry is smaller');
      assert.equal(answer.tool_call_id, 'call_recall');
      assert.match(answer.content, /needle/);
    }
  });
}
