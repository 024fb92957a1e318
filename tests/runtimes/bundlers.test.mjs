// The packed package bundled by Vite, webpack, esbuild and Rollup with their default settings, and
// on a page with a strict Content-Security-Policy: what comes out runs in Chromium.
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import nodeResolve from '@rollup/plugin-node-resolve';
import * as esbuild from 'esbuild';
import { rollup } from 'rollup';
import * as vite from 'vite';
import webpack from 'webpack';
import { answerOf, launch, serve } from './chromium.mjs';
import { cleanProject, goldenCases } from './project.mjs';

let project;
let browser;
before(async () => {
  project = await cleanProject();
  project.write(
    'main.js',
    `
    import cases from './cases.js';
    import { conformance } from './conformance.js';
    conformance(cases).then((answer) => { globalThis.answer = answer; });
    `,
  );
  browser = await launch();
});
after(async () => {
  await browser?.close();
  project?.remove();
});

const page = (script, type = 'module') =>
  `<!doctype html><meta charset="utf-8"><title>tidemark</title><script type="${type}" src="${script}"></script>`;

/** Serves a folder of the project and checks what its page answers. */
async function checkPage(t, folder, headers) {
  const server = await serve(join(project.folder, folder), headers);
  try {
    const { golden, host } = await answerOf(browser, `${server.url}/index.html`);
    assert.deepEqual(golden, goldenCases().vectors);
    assert.ok(host.decisions > 0 && host.kept > 0);
  } finally {
    await server.close();
  }
  const files = readdirSync(join(project.folder, folder), { recursive: true });
  const sizes = files.map((file) => statSync(join(project.folder, folder, file)).size);
  t.diagnostic(`${sizes.reduce((a, b) => a + b)} bytes, the transcripts included`);
  assert.ok(!files.some((file) => file.endsWith('.wasm')), 'the wasm is inside, not beside');
}

test('Vite', async (t) => {
  project.write('index.html', page('/main.js'));
  const build = { outDir: join(project.folder, 'vite') };
  await vite.build({ root: project.folder, configFile: false, logLevel: 'warn', build });
  await checkPage(t, 'vite');
});

test('Vite, as its development server serves it', async () => {
  project.write('index.html', page('/main.js'));
  const server = await vite.createServer({
    root: project.folder,
    configFile: false,
    logLevel: 'warn',
    server: { host: '127.0.0.1', port: 0, hmr: false },
  });
  try {
    await server.listen();
    const { port } = server.httpServer.address();
    const { golden } = await answerOf(browser, `http://127.0.0.1:${port}/`);
    assert.deepEqual(golden, goldenCases().vectors);
  } finally {
    await server.close();
  }
});

test('webpack', async (t) => {
  const path = join(project.folder, 'webpack');
  const options = { context: project.folder, entry: './main.js', output: { path } };
  const stats = await new Promise((resolve, reject) => {
    webpack({ mode: 'production', ...options }, (error, stats) => {
      if (error) reject(error);
      else resolve(stats);
    });
  });
  assert.deepEqual(stats.toJson().errors, []);
  project.write('webpack/index.html', page('main.js', 'text/javascript'));
  await checkPage(t, 'webpack');
});

test('esbuild', async (t) => {
  await esbuild.build({
    entryPoints: [join(project.folder, 'main.js')],
    outfile: join(project.folder, 'esbuild/main.js'),
    bundle: true,
    minify: true,
  });
  project.write('esbuild/index.html', page('main.js'));
  await checkPage(t, 'esbuild');
});

test('Rollup', async (t) => {
  const warnings = [];
  const bundle = await rollup({
    input: join(project.folder, 'main.js'),
    plugins: [nodeResolve({ browser: true })],
    onwarn: (warning) => warnings.push(warning.message),
  });
  await bundle.write({ dir: join(project.folder, 'rollup') });
  assert.deepEqual(warnings, []);
  project.write('rollup/index.html', page('main.js'));
  await checkPage(t, 'rollup');
});

const strict = (sources) => ({
  'content-security-policy': `default-src 'none'; script-src ${sources}; connect-src 'none'`,
});

test('a page with a strict Content-Security-Policy', async (t) => {
  await esbuild.build({
    entryPoints: [join(project.folder, 'main.js')],
    outfile: join(project.folder, 'strict/main.js'),
    bundle: true,
  });
  project.write('strict/index.html', page('main.js'));
  await checkPage(t, 'strict', strict("'self' 'wasm-unsafe-eval'"));
});

test("without 'wasm-unsafe-eval' the error says what to allow", async () => {
  project.write(
    'refused.js',
    `
    import { Compactor } from 'tidemark';
    try {
      new Compactor();
      globalThis.answer = 'it started';
    } catch (error) {
      globalThis.answer = [error.name, error.code, error.message];
    }
    `,
  );
  await esbuild.build({
    entryPoints: [join(project.folder, 'refused.js')],
    outfile: join(project.folder, 'refused/main.js'),
    bundle: true,
  });
  project.write('refused/index.html', page('main.js'));
  const server = await serve(join(project.folder, 'refused'), strict("'self'"));
  try {
    const [name, code, message] = await answerOf(browser, `${server.url}/index.html`);
    assert.deepEqual([name, code], ['TidemarkError', 'no_wasm']);
    assert.match(message, /script-src 'wasm-unsafe-eval'/);
  } finally {
    await server.close();
  }
});
