// What publint and are-the-types-wrong say of the packed package.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { publint } from 'publint';
import { bin, cleanProject, root, run } from './project.mjs';

let project;
before(async () => {
  project = await cleanProject();
});
after(() => project.remove());

test('publint has nothing to say, suggestions included', async () => {
  const { messages } = await publint({ pkgDir: join(root, 'pkg'), strict: true });
  assert.deepEqual(messages, []);
});

test('are-the-types-wrong finds nothing, for require, import, bundlers and old TypeScript', async () => {
  // The component is for hosts that have no TypeScript.
  const left = ['--exclude-entrypoints', 'component', 'component/wit'];
  const args = [project.tarball, '--format', 'json', ...left];
  const report = await run(bin('attw'), args, project.folder);
  const { analysis, problems } = JSON.parse(report);
  assert.deepEqual(problems ?? {}, {});
  assert.ok(Object.keys(analysis.entrypoints).includes('./slim'));
});
