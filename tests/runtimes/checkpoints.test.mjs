// The README's pattern for checkpoints compiles, and resumes a conversation in every runtime.
import assert from 'node:assert/strict';
import { readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';
import { answerOf, launch, serve } from './chromium.mjs';
import {
  bin,
  bundleForWorkerd,
  bunProgram,
  cleanProject,
  root,
  run,
  startRedis,
} from './project.mjs';

let project;
let redis;

before(async () => {
  project = await cleanProject();
  const packages = join(project.folder, 'node_modules');
  symlinkSync(join(root, 'tests/runtimes/node_modules/unstorage'), join(packages, 'unstorage'));
  redis = await startRedis();
  const readme = readFileSync(join(root, 'pkg-template/README.md'), 'utf8');
  const samples = [...readme.matchAll(/^```ts\n(\/\/ (\w+\.ts)\b.*?)^```$/gms)];
  assert.equal(samples.length, 5);
  for (const [, code, name] of samples) {
    const small = code.replace('window: 128_000', 'window: 16_000');
    project.write(name, small.replace('redis://localhost:6379', `redis://127.0.0.1:${redis.port}`));
  }
  project.write('turns.ts', turns);
});
after(() => {
  project?.remove();
  redis?.stop();
});

/** A turn, then two workers at once on the next one. */
const turns = `
import type { ChatMessage } from 'tidemark';
type Next = (id: string, transcript: ChatMessage[]) => Promise<ChatMessage[]>;
type Revision = (id: string) => Promise<number | undefined>;
export async function turns(transcript: ChatMessage[], next: Next, revision: Revision) {
  await next('chat-42', transcript.slice(0, transcript.length / 2));
  const first = await revision('chat-42');
  const [a, b] = await Promise.all([next('chat-42', transcript), next('chat-42', transcript)]);
  const again = await next('chat-42', transcript);
  const views = [a, b, again].map((view) => JSON.stringify(view));
  return {
    first,
    second: await revision('chat-42'),
    other: (await revision('chat-43')) ?? 'none',
    same: views[0] === views[1] && views[1] === views[2],
    smaller: views[0].length < JSON.stringify(transcript).length,
  };
}
`;

const main = (sample, store, end) => `
import cases from './cases.js';
import { CheckpointStore } from 'tidemark/stores/checkpoints';
${store}
import { next } from './${sample}.js';
import { turns } from './turns.js';
const checkpoints = new CheckpointStore(store, { namespace: 'tenant-7' });
const revision = async (id) => (await checkpoints.load(id))?.revision;
turns(cases.transcripts['mid.json'], next, revision).then((answer) => {
  ${end}
});
`;
const print = 'console.log(JSON.stringify(answer));';

function check(answer) {
  assert.deepEqual(answer, { first: 1, second: 2, other: 'none', same: true, smaller: true });
}

test('the samples compile, strictly', async () => {
  project.write(
    'workers.d.ts',
    `
    type ObjectStorage = ConstructorParameters<
      typeof import('tidemark/stores/cloudflare').DurableObjectStore
    >[0];
    declare module 'cloudflare:workers' {
      export class DurableObject {
        ctx: { storage: ObjectStorage };
      }
    }
    `,
  );
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'dom'],
    module: 'nodenext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    noEmit: true,
    // The declarations of unstorage want those of its optional peers.
    skipLibCheck: true,
    types: [],
  };
  const names = ['conversation', 'server', 'page', 'object', 'machines'].map(
    (name) => `${name}.ts`,
  );
  const files = [...names, 'workers.d.ts'];
  project.write('tsconfig.json', JSON.stringify({ compilerOptions, files }));
  await run(join(root, 'js/node_modules/.bin/tsc'), ['-p', '.'], project.folder);
});

test('Node, Deno and Bun', async (t) => {
  const store = `
    import { FileStore } from 'tidemark/stores/file';
    const store = new FileStore('./conversations');
  `;
  project.write('server-main.ts', main('server', store, print));
  const entry = await bundle('server-main', { external: ['tidemark'], platform: 'node' });
  for (const [name, command, args] of [
    ['Node', process.execPath, []],
    ['Deno', bin('deno'), ['run', '-A']],
    ['Bun', bunProgram(), []],
  ]) {
    await t.test(name, async () => {
      check(JSON.parse(await run(command, [...args, entry], project.folder)));
      rmSync(join(project.folder, 'conversations'), { recursive: true });
    });
  }
});

test('Chromium', async () => {
  const store = `
    import { IndexedDBStore } from 'tidemark/stores/indexeddb';
    const store = new IndexedDBStore({ database: 'conversations' });
  `;
  project.write('page-main.ts', main('page', store, 'globalThis.answer = answer;'));
  await bundle('page-main', {});
  project.write(
    'out/index.html',
    '<!doctype html><script type="module" src="page-main.js"></script>',
  );
  const server = await serve(join(project.folder, 'out'));
  const browser = await launch();
  try {
    check(await answerOf(browser, `${server.url}/index.html`));
  } finally {
    await browser.close();
    await server.close();
  }
});

test('a Durable Object', async () => {
  project.write(
    'object-main.ts',
    `
    import cases from './cases.js';
    import { CheckpointStore } from 'tidemark/stores/checkpoints';
    import { DurableObjectStore } from 'tidemark/stores/cloudflare';
    import { Conversation } from './object.js';
    import { turns } from './turns.js';
    export class Observed extends Conversation {
      async revision(id) {
        const store = new DurableObjectStore(this.ctx.storage);
        return (await new CheckpointStore(store, { namespace: 'tenant-7' }).load(id))?.revision;
      }
    }
    export default {
      async fetch(_, env) {
        const object = env.OBJECT.get(env.OBJECT.idFromName('chat-42'));
        const next = (id, transcript) => object.next(id, transcript);
        const revision = (id) => object.revision(id);
        const answer = await turns(cases.transcripts['mid.json'], next, revision);
        return Response.json(answer);
      },
    };
    `,
  );
  const modules = await bundleForWorkerd(join(project.folder, 'object-main.ts'));
  const miniflare = new Miniflare({
    compatibilityDate: '2026-04-01',
    modules,
    durableObjects: { OBJECT: { className: 'Observed', useSQLite: true } },
  });
  try {
    check(await (await miniflare.dispatchFetch('http://worker/')).json());
  } finally {
    await miniflare.dispose();
  }
});

test('Redis, through unstorage', async () => {
  const store = `
    import { UnstorageStore } from 'tidemark/stores/unstorage';
    import { createStorage } from 'unstorage';
    import redis from 'unstorage/drivers/redis';
    const driver = redis({ url: 'redis://127.0.0.1:${redis.port}' });
    const store = new UnstorageStore(createStorage({ driver }));
  `;
  project.write('machines-main.ts', main('machines', store, `${print} process.exit();`));
  const banner = {
    js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
  };
  const entry = await bundle('machines-main', { platform: 'node', banner });
  check(JSON.parse(await run(process.execPath, [entry], project.folder)));
});

/** A bundle of a program, as the file that it is in. */
async function bundle(name, options) {
  const outfile = join(project.folder, `out/${name}.js`);
  await build({
    entryPoints: [join(project.folder, `${name}.ts`)],
    outfile,
    bundle: true,
    format: 'esm',
    ...options,
  });
  return outfile;
}
