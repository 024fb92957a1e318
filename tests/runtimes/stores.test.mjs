// Every store against the real thing: files in Node, Deno and Bun, IndexedDB and the Cache API in
// Chromium, KV, R2 and Durable Objects in workerd, Redis through unstorage against redis-server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { build } from 'esbuild';
import { Redis } from 'ioredis';
import { Miniflare } from 'miniflare';
import { createStorage } from 'unstorage';
import fsDriver from 'unstorage/drivers/fs';
import redisDriver from 'unstorage/drivers/redis';
import { answerOf, launch, serve } from './chromium.mjs';
import { bin, bunProgram, cleanProject, root, run, startRedis } from './project.mjs';

let project;
let scratch;
before(async () => {
  project = await cleanProject();
  scratch = mkdtempSync(join(tmpdir(), 'tidemark-stores-'));
  cpSync(join(root, 'tests/runtimes/contract.js'), join(project.folder, 'contract.js'));
});
after(() => {
  project?.remove();
  rmSync(scratch, { recursive: true, force: true });
});

function check({ broken, checks }) {
  assert.deepEqual(broken, []);
  assert.ok(checks > 30, `${checks} checks`);
}

const local = (folder) => `
import { mkdtempSync } from 'node:fs';
import { contract } from './contract.js';
import { EncryptedStore } from 'tidemark/stores/encrypted';
import { FileStore } from 'tidemark/stores/file';
import { MemoryStore } from 'tidemark/stores/memory';
const secret = new Uint8Array(32).fill(7);
const fresh = () => new FileStore(mkdtempSync(${JSON.stringify(join(folder, 'files-'))}));
const stores = {
  memory: new MemoryStore(),
  file: fresh(),
  'file, bounded': (() => {
    const folder = mkdtempSync(${JSON.stringify(join(folder, 'bounded-'))});
    return new FileStore(folder, { maxBytes: 1 << 24 });
  })(),
  'encrypted memory': new EncryptedStore(new MemoryStore(), secret),
  'encrypted file': new EncryptedStore(fresh(), secret),
};
const answer = {};
for (const [name, store] of Object.entries(stores)) answer[name] = await contract(store);
console.log(JSON.stringify(answer));
`;

for (const [name, start] of [
  ['Node', () => [process.execPath, ['local.mjs']]],
  ['Deno', () => [bin('deno'), ['run', '-A', 'local.mjs']]],
  ['Bun', () => [bunProgram(), ['local.mjs']]],
]) {
  test(`memory, files and encryption in ${name}`, async (t) => {
    project.write('local.mjs', local(scratch));
    const answer = JSON.parse(await run(...start(), project.folder));
    for (const [store, found] of Object.entries(answer)) {
      await t.test(store, () => check(found));
    }
    assert.equal(Object.keys(answer).length, 5);
  });
}

test('IndexedDB and the Cache API in Chromium', async (t) => {
  await bundle(
    'browser.js',
    `
    import { contract } from './contract.js';
    import { CacheStore } from 'tidemark/stores/cache';
    import { EncryptedStore } from 'tidemark/stores/encrypted';
    import { IndexedDBStore } from 'tidemark/stores/indexeddb';
    const secret = crypto.getRandomValues(new Uint8Array(32));
    const main = async () => {
      const kept = new IndexedDBStore({ database: 'kept' });
      if (location.search === '?again') return { kept: await kept.get('chat/1') };
      await kept.put('chat/1', 'from the first page');
      return {
        indexedDB: await contract(new IndexedDBStore({ database: 'plain' })),
        'encrypted indexedDB': await contract(
          new EncryptedStore(new IndexedDBStore({ database: 'closed' }), secret),
        ),
        cache: await contract(new CacheStore(() => caches.open('tidemark'))),
      };
    };
    main().then((answer) => { globalThis.answer = answer; }, (error) => console.error(error.stack));
  `,
  );
  project.write(
    'site/index.html',
    '<!doctype html><script type="module" src="browser.js"></script>',
  );
  const server = await serve(join(project.folder, 'site'));
  const browser = await launch();
  try {
    const context = await browser.newContext();
    const answer = await answerOf(context, `${server.url}/index.html`);
    for (const [store, found] of Object.entries(answer)) {
      await t.test(store, () => check(found));
    }
    const { kept } = await answerOf(context, `${server.url}/index.html?again`);
    assert.equal(kept, 'from the first page', 'another page of the origin sees it');
  } finally {
    await browser.close();
    await server.close();
  }
});

/** Bundles a program of the project for a page, in site/. */
async function bundle(name, text) {
  project.write(name, text);
  await build({
    entryPoints: [join(project.folder, name)],
    outfile: join(project.folder, 'site', name),
    bundle: true,
    format: 'esm',
  });
}

test('KV, R2, Durable Objects and the cache in workerd', async (t) => {
  project.write(
    'stores-worker.js',
    `
    import { contract } from './contract.js';
    import { CacheStore } from 'tidemark/stores/cache';
    import { DurableObjectStore, KVStore, R2Store } from 'tidemark/stores/cloudflare';
    import { EncryptedStore } from 'tidemark/stores/encrypted';
    const secret = new Uint8Array(16).fill(3);
    export class Conversation {
      constructor(ctx) { this.storage = ctx.storage; }
      async fetch() { return Response.json(await contract(new DurableObjectStore(this.storage))); }
    }
    export class SqlConversation extends Conversation {}
    const object = (space) => space.get(space.idFromName('x')).fetch('http://x/');
    export default {
      async fetch(request, env) {
        const name = new URL(request.url).pathname.slice(1);
        const stores = {
          kv: () => new KVStore(env.KV),
          r2: () => new R2Store(env.R2),
          'encrypted-r2': () => new EncryptedStore(new R2Store(env.R2_CLOSED), secret),
          cache: () => new CacheStore(() => caches.open('tidemark')),
        };
        try {
          if (name === 'object') return await object(env.OBJECT);
          if (name === 'sql-object') return await object(env.SQL_OBJECT);
          return Response.json(await contract(stores[name]()));
        } catch (error) {
          return Response.json({ broken: [error.stack], checks: 0 });
        }
      },
    };
  `,
  );
  const { outputFiles } = await build({
    entryPoints: [join(project.folder, 'stores-worker.js')],
    bundle: true,
    write: false,
    format: 'esm',
    conditions: ['workerd', 'worker', 'browser'],
  });
  const miniflare = new Miniflare({
    compatibilityDate: '2026-04-01',
    modules: [{ type: 'ESModule', path: 'worker.mjs', contents: outputFiles[0].text }],
    kvNamespaces: ['KV'],
    r2Buckets: ['R2', 'R2_CLOSED'],
    durableObjects: {
      OBJECT: { className: 'Conversation' },
      SQL_OBJECT: { className: 'SqlConversation', useSQLite: true },
    },
  });
  try {
    for (const name of ['kv', 'r2', 'encrypted-r2', 'object', 'sql-object', 'cache']) {
      await t.test(name, async () => {
        check(await (await miniflare.dispatchFetch(`http://worker/${name}`)).json());
      });
    }
  } finally {
    await miniflare.dispose();
  }
});

test('unstorage, with Redis and with files', async (t) => {
  const { contract } = await import(join(project.folder, 'contract.js'));
  const { UnstorageStore } = await import(
    join(project.folder, 'node_modules/tidemark/stores/unstorage.js')
  );
  const redis = await startRedis();
  const client = new Redis(redis.port, '127.0.0.1');
  const storage = createStorage({
    driver: redisDriver({ base: 'tidemark', port: redis.port, host: '127.0.0.1' }),
  });
  try {
    await t.test('Redis', async () => {
      check(await contract(new UnstorageStore(storage)));
      assert.ok((await client.dbsize()) > 5, 'they are in Redis');
    });
    await t.test('files', async () => {
      const driver = fsDriver({ base: join(scratch, 'unstorage') });
      check(await contract(new UnstorageStore(createStorage({ driver }))));
    });
  } finally {
    await storage.dispose();
    client.disconnect();
    redis.stop();
  }
});

test('a process killed in the middle of puts, a hundred times, leaves nothing torn or wrong', async (t) => {
  const folder = join(scratch, 'killed');
  project.write(
    'writer.mjs',
    `
    import { createHash } from 'node:crypto';
    import { FileStore } from 'tidemark/stores/file';
    const store = new FileStore(${JSON.stringify(folder)});
    for (let at = 0; ; at++) {
      const content = (process.argv[2] + ':' + at + ':漢').repeat(20_000);
      const key = 'chat/' + createHash('sha256').update(content).digest('hex');
      const put = store.put(key, content);
      if (at === 0) process.stdout.write('.');
      await put;
    }
  `,
  );
  const life = async (number) => {
    const args = ['writer.mjs', `${number}`];
    const child = spawn(process.execPath, args, {
      cwd: project.folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise((resolve) => child.on('exit', (_, signal) => resolve(signal)));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    // Spread over the writing, syncing and renaming of the first few contents.
    await new Promise((resolve) => setTimeout(resolve, number % 40));
    child.kill('SIGKILL');
    assert.equal(await ended, 'SIGKILL');
  };
  for (let number = 0; number < 100; number += 2)
    await Promise.all([life(number), life(number + 1)]);

  const { FileStore } = await import(join(project.folder, 'node_modules/tidemark/stores/file.js'));
  const store = new FileStore(folder);
  let found = 0;
  for await (const key of store.list('chat/')) {
    const content = await store.get(key);
    assert.equal(`chat/${createHash('sha256').update(content).digest('hex')}`, key);
    found++;
  }
  const unfinished = readdirSync(join(folder, '.parts')).length;
  t.diagnostic(`${found} whole contents, ${unfinished} unfinished ones apart from them`);
  assert.ok(found > 0 && unfinished > 0, 'some were killed in the middle');
});
