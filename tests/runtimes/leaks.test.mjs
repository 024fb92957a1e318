// Ten thousand sessions, created and dropped: the engine's memory stays flat, in Node and Chromium.
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { answerOf, launch, serve } from './chromium.mjs';
import { cleanProject, root, run } from './project.mjs';

/** What the memory of WebAssembly grows by. */
const PAGE = 65_536;

let project;
before(async () => {
  project = await cleanProject();
  cpSync(join(root, 'tests/runtimes/leaks.js'), join(project.folder, 'leaks.js'));
});
after(() => project?.remove());

/**
 * Flat: at most a page more at the end than after half of them, which is 13 bytes a session. One that
 * lives takes some 15 KB. Before, free space finds its shape.
 */
function flat(t, sizes) {
  t.diagnostic(`${sizes.join(', ')} bytes after each thousand`);
  assert.equal(sizes.length, 10);
  assert.ok(sizes[9] - sizes[4] <= PAGE, 'it grew');
  assert.ok(sizes[9] < 16_000_000);
}

const program = (end) => `
import { churn } from './leaks.js';
const pause = async () => {
  globalThis.gc();
  await new Promise((resolve) => setTimeout(resolve));
};
churn(pause${end}).then((sizes) => {
  globalThis.answer = sizes;
  if (globalThis.process) console.log(JSON.stringify(sizes));
});
`;

for (const [name, end] of [
  ['nobody frees', ''],
  ['are disposed of', ', (session) => session[Symbol.dispose]()'],
]) {
  test(`Node: sessions that ${name}`, async (t) => {
    project.write('leaks.mjs', program(end));
    flat(t, JSON.parse(await run(process.execPath, ['--expose-gc', 'leaks.mjs'], project.folder)));
  });
}

test('Chromium: sessions that nobody frees', async (t) => {
  project.write('leaks-page.js', program(''));
  await build({
    entryPoints: [join(project.folder, 'leaks-page.js')],
    outfile: join(project.folder, 'site/main.js'),
    bundle: true,
    format: 'esm',
  });
  project.write('site/index.html', '<!doctype html><script type="module" src="main.js"></script>');
  const server = await serve(join(project.folder, 'site'));
  const browser = await launch(['--js-flags=--expose-gc']);
  try {
    flat(t, await answerOf(browser, `${server.url}/index.html`, 300_000));
  } finally {
    await browser.close();
    await server.close();
  }
});
