// The packed package does the same, to the byte, in every runtime that it claims.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { EdgeVM } from '@edge-runtime/vm';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { answerOf, launch, serve } from './chromium.mjs';
import { bin, bundleForWorkerd, bunProgram, cleanProject, goldenCases, run } from './project.mjs';

let project;
let expected;

const program = `
import cases from './cases.js';
import { conformance } from './conformance.js';
console.log(JSON.stringify(await conformance(cases)));
`;

before(async () => {
  project = await cleanProject();
  project.write('run.mjs', program);
  const { host } = JSON.parse(await run(process.execPath, ['run.mjs'], project.folder));
  expected = { golden: goldenCases().vectors, host };
});
after(() => project.remove());

function check(answer) {
  assert.deepEqual(answer.golden, expected.golden);
  assert.deepEqual(answer.host, expected.host);
  assert.ok(answer.host.decisions > 0 && answer.host.kept > 0 && answer.host.asked.length > 0);
  assert.deepEqual(answer.host.refused, ['invalid_option', 'options.window']);
}

test('Node, as an ES module', async () => {
  check(JSON.parse(await run(process.execPath, ['run.mjs'], project.folder)));
});

test('Node, by require of the CommonJS build alone', async () => {
  // What Node before 20.19 runs: there `require` knows no ES module.
  project.write(
    'common.mjs',
    program.replace(
      /console.log\(JSON.stringify\(await (.*)\)\);/,
      `
    $1.then((answer) => console.log(JSON.stringify(answer)));
  `,
    ),
  );
  await build({
    entryPoints: [join(project.folder, 'common.mjs')],
    outfile: join(project.folder, 'common.cjs'),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    external: ['tidemark*'],
  });
  // Fails where anything else of the package is loaded.
  const guard = `
    process.on('exit', () => {
      const files = Object.keys(require.cache).filter((file) => file.includes('/tidemark/'));
      if (files.length === 0 || !files.every((file) => file.includes('/tidemark/cjs/'))) {
        throw new Error('not the CommonJS build: ' + files);
      }
    });
  `;
  project.write('guard.cjs', guard);
  const args = ['-r', './guard.cjs', 'common.cjs'];
  check(JSON.parse(await run(process.execPath, args, project.folder)));
});

test('Deno', async () => {
  check(JSON.parse(await run(bin('deno'), ['run', '-A', 'run.mjs'], project.folder)));
});

test('Bun', async () => {
  check(JSON.parse(await run(bunProgram(), ['run.mjs'], project.folder)));
});

test('workerd, in miniflare, with the wasm as a static import', async () => {
  project.write(
    'worker.js',
    `
    import cases from './cases.js';
    import { conformance } from './conformance.js';
    export default {
      async fetch() { return Response.json(await conformance(cases)); },
    };
    `,
  );
  const worker = await bundleForWorkerd(join(project.folder, 'worker.js'));
  const miniflare = new Miniflare({ compatibilityDate: '2026-04-01', modules: worker });
  try {
    check(await (await miniflare.dispatchFetch('http://worker/')).json());
  } finally {
    await miniflare.dispose();
  }
});

test('the edge runtime, with the wasm as ?module', async () => {
  const wasm = [];
  const plugin = {
    name: 'edge-modules',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /\.wasm\?module$/ }, ({ path, resolveDir }) => {
        wasm.push(join(resolveDir, path.replace('?module', '')));
        return { path: 'tidemark', namespace: 'edge' };
      });
      onLoad({ filter: /.*/, namespace: 'edge' }, () => ({
        contents: 'export default globalThis.tidemarkModule;',
      }));
    },
  };
  project.write(
    'edge.js',
    program.replace(
      'console.log(JSON.stringify(await conformance(cases)));',
      'globalThis.answer = conformance(cases).then(JSON.stringify);',
    ),
  );
  const { outputFiles } = await build({
    entryPoints: [join(project.folder, 'edge.js')],
    bundle: true,
    write: false,
    format: 'iife',
    conditions: ['edge-light', 'browser'],
    plugins: [plugin],
  });
  assert.equal(wasm.length, 1, 'one wasm file is imported');
  const vm = new EdgeVM({
    extend: (context) => Object.assign(context, { bytes: new Uint8Array(readFileSync(wasm[0])) }),
  });
  // The platform compiles the module, at deployment; code may not.
  vm.evaluate('globalThis.tidemarkModule = new WebAssembly.Module(bytes)');
  vm.evaluate(`{
    const { Module } = WebAssembly;
    WebAssembly.Module = class {
      constructor() { throw new WebAssembly.CompileError('code generation disallowed'); }
      static [Symbol.hasInstance](value) { return value instanceof Module; }
    };
  }`);
  vm.evaluate(outputFiles[0].text);
  check(JSON.parse(await vm.evaluate('globalThis.answer')));
});

const page = (head) => `<!doctype html><meta charset="utf-8"><title>tidemark</title>${head}`;
const importMap = page(`
<script type="importmap">{ "imports": {
  "tidemark": "/node_modules/tidemark/index.js",
  "tidemark/stores/memory": "/node_modules/tidemark/stores/memory.js"
} }</script>
<script type="module">
import cases from './cases.js';
import { conformance } from './conformance.js';
globalThis.answer = await conformance(cases);
</script>`);
const streaming = page(`
<script type="importmap">{ "imports": {
  "tidemark": "/node_modules/tidemark/slim.js",
  "tidemark/stores/memory": "/node_modules/tidemark/stores/memory.js"
} }</script>
<script type="module">
import { init, Session } from 'tidemark';
import cases from './cases.js';
import { conformance } from './conformance.js';
let before;
try { new Session(); } catch (error) { before = error.code; }
const wasm = fetch('/node_modules/tidemark/wasm/tidemark_bg.wasm');
init(await WebAssembly.compileStreaming(wasm));
globalThis.answer = { ...await conformance(cases), before };
</script>`);

test('Chromium, without a bundler', async () => {
  project.write('index.html', importMap);
  project.write('slim.html', streaming);
  const server = await serve(project.folder);
  const browser = await launch();
  try {
    check(await answerOf(browser, `${server.url}/index.html`));
    const slim = await answerOf(browser, `${server.url}/slim.html`);
    check(slim);
    assert.equal(slim.before, 'no_wasm');
  } finally {
    await browser.close();
    await server.close();
  }
});
