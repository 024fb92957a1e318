// The engine in a Web Worker, behind the methods of a compactor: in Chromium, Deno and Bun.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import * as esbuild from 'esbuild';
import * as vite from 'vite';
import { answerOf, launch, serve } from './chromium.mjs';
import { bin, bunProgram, cleanProject, root, run } from './project.mjs';

let project;
before(async () => {
  project = await cleanProject();
  cpSync(join(root, 'tests/runtimes/worker.js'), join(project.folder, 'worker.js'));
  project.write('engine.js', "import 'tidemark/worker/engine';\n");
  project.write('broken.js', "throw new Error('out of order');\n");
  project.write(
    'main.js',
    `
    import cases from './cases.js';
    import { offloaded } from './worker.js';
    offloaded(
      () => new Worker(new URL('./engine.js', import.meta.url), { type: 'module' }),
      () => {
        const worker = new Worker(new URL('./broken.js', import.meta.url), { type: 'module' });
        worker.addEventListener('error', (event) => event.preventDefault());
        return worker;
      },
      cases.transcripts['mid.json'],
    ).then((answer) => {
      globalThis.answer = answer;
      if (!globalThis.document) console.log(JSON.stringify(answer));
    });
    `,
  );
});
after(() => project?.remove());

function check({ wrong, checks }) {
  assert.deepEqual(wrong, []);
  assert.ok(checks > 60, `${checks} checks`);
}

test('Deno', async () => {
  check(JSON.parse(await run(bin('deno'), ['run', '-A', 'main.js'], project.folder)));
});

test('Bun', async () => {
  check(JSON.parse(await run(bunProgram(), ['main.js'], project.folder)));
});

const page = '<!doctype html><meta charset="utf-8"><title>tidemark</title>';

/** What the page of a folder answers. */
async function answer(folder, headers) {
  const server = await serve(join(project.folder, folder), headers);
  const browser = await launch();
  try {
    return await answerOf(browser, `${server.url}/index.html`);
  } finally {
    await browser.close();
    await server.close();
  }
}

test('Chromium, bundled by Vite', async () => {
  project.write('index.html', `${page}<script type="module" src="/main.js"></script>`);
  const build = { outDir: join(project.folder, 'vite') };
  const worker = { format: 'es' };
  await vite.build({ root: project.folder, configFile: false, logLevel: 'warn', build, worker });
  check(await answer('vite'));
});

test('Chromium, bundled by esbuild, under a strict Content-Security-Policy', async () => {
  await esbuild.build({
    entryPoints: ['main.js', 'engine.js', 'broken.js'].map((name) => join(project.folder, name)),
    outdir: join(project.folder, 'esbuild'),
    bundle: true,
    format: 'esm',
  });
  project.write('esbuild/index.html', `${page}<script type="module" src="main.js"></script>`);
  const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'";
  check(await answer('esbuild', { 'content-security-policy': policy }));
});

test("the page's side holds no engine", async () => {
  project.write('page.js', "export { WorkerCompactor } from 'tidemark/worker';\n");
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(project.folder, 'page.js')],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
  });
  const { text } = outputFiles[0];
  assert.ok(!text.includes('AGFzbQ') && !text.includes('WebAssembly'));
  assert.ok(text.length < 20_000, `${text.length} bytes`);
});
