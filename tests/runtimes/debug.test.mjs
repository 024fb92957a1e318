// A panic of the engine: a typed error in both builds, and with its message in a debug build.
import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { buildWasm } from '../../js/build.mjs';
import { cleanProject, run } from './project.mjs';

let project;
let tidemark;
before(async () => {
  project = await cleanProject();
  tidemark = join(project.folder, 'node_modules/tidemark');
  project.write(
    'panic.mjs',
    `
    import { InternalError, Session } from 'tidemark';
    import * as glue from './node_modules/tidemark/wasm/tidemark.js';
    const options = { window: 16000 };
    const session = new Session(options);
    session.plan([{ role: 'user', content: 'hi' }]);
    const checkpoint = session.checkpoint();
    glue.Engine.prototype.estimate = () => glue.panicOnPurpose();
    const seen = [];
    for (const action of [() => session.estimate(), () => session.render()]) {
      try { action(); } catch (error) {
        seen.push([error instanceof InternalError, error.code, error.message]);
      }
    }
    const again = Session.restore(checkpoint, options);
    again.plan([{ role: 'user', content: 'hi' }]);
    console.log(JSON.stringify({ seen, view: again.render() }));
    `,
  );
});
after(() => project?.remove());

test('the published build has no way to panic on purpose', () => {
  const glue = readFileSync(join(tidemark, 'wasm/tidemark.js'), 'utf8');
  assert.doesNotMatch(glue, /panicOnPurpose/);
});

test('a debug build says what panicked and where, and the session is rebuilt', async () => {
  const debug = join(project.folder, 'debug');
  await buildWasm({ debug: true, to: debug });
  cpSync(join(debug, 'wasm'), join(tidemark, 'wasm'), { recursive: true });
  const { seen, view } = JSON.parse(await run(process.execPath, ['panic.mjs'], project.folder));
  const [first, second] = seen;
  assert.deepEqual(first.slice(0, 2), [true, 'internal']);
  assert.match(first[2], /panicked at \S*src\/wasm\.rs:\d+:\d+:\non purpose/);
  assert.match(first[2], /restore from the last checkpoint/);
  assert.deepEqual(second, first);
  assert.deepEqual(view, [{ role: 'user', content: 'hi' }]);
});
