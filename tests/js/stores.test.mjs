// The stores that come with the package.
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { TidemarkError } from '../../pkg/index.js';
import { CheckpointStore } from '../../pkg/stores/checkpoints.js';
import { EncryptedStore } from '../../pkg/stores/encrypted.js';
import { FileStore } from '../../pkg/stores/file.js';
import { MemoryStore } from '../../pkg/stores/memory.js';

const key = (digits, namespace = 'chat') => `${namespace}/${digits.padStart(64, '0')}`;

let folder;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-store-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const files = (at = folder) =>
  readdirSync(at, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

test('D01: the memory store gives back what was put, and the newest where it was put twice', () => {
  const store = new MemoryStore();
  assert.equal(store.get('a'), undefined);
  store.put('a', 'one');
  assert.equal(store.get('a'), 'one');
  store.put('a', 'three');
  assert.equal(store.get('a'), 'three');
  assert.equal(store.size, 1);
  assert.equal(store.bytes, 10);
});

test('D02: over its bytes the memory store lets go of what was put first', () => {
  const store = new MemoryStore({ maxBytes: 8 });
  for (const name of ['a', 'b', 'c']) store.put(name, `${name}1`);
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => store.get(name)),
    [undefined, 'b1', 'c1'],
  );
  assert.equal(store.bytes, 8);
});

test('D03: a get makes a content young again', () => {
  const store = new MemoryStore({ maxBytes: 8 });
  store.put('a', 'a1');
  store.put('b', 'b1');
  store.get('a');
  store.put('c', 'c1');
  assert.deepEqual(
    ['a', 'b', 'c'].map((name) => store.get(name)),
    ['a1', undefined, 'c1'],
  );
});

test('D04: the memory store refuses a bound that is none', () => {
  for (const maxBytes of [0, -1, Number.NaN, 'many']) {
    assert.throws(
      () => new MemoryStore({ maxBytes }),
      (error) => TidemarkError.isInstance(error) && error.path === 'options.maxBytes',
    );
  }
});

test('D05: the memory store is bounded by default', () => {
  const store = new MemoryStore();
  const megabyte = 'x'.repeat(512 * 1024);
  for (let at = 0; at < 70; at++) store.put(`${at}`, megabyte);
  assert.equal(store.size, 64);
  assert.equal(store.get('5'), undefined);
  assert.equal(store.get('69'), megabyte);
});

test('the memory store refuses what it could not keep, and keeps what it has', () => {
  const store = new MemoryStore({ maxBytes: 8 });
  store.put('a', 'a1');
  assert.throws(() => store.put('b', 'much too long'), RangeError);
  assert.equal(store.get('a'), 'a1');
});

test('D06: the file store makes its folder and gives back the exact text', async () => {
  const store = new FileStore(join(folder, 'deep', 'er'));
  const text = '\uFEFFline\r\nline\n\ttab \u0000 é 漢字 👩‍👩‍👧 end';
  await store.put(key('1'), text);
  assert.equal(await store.get(key('1')), text);
  assert.equal(await store.get(key('2')), undefined);
});

test('the file store lays contents out by namespace and the first digits of the hash', async () => {
  await new FileStore(folder).put(key('ab', 'my.chat'), 'text');
  const path = join(folder, 'my.chat', '00', `${'0'.repeat(60)}ab`);
  assert.equal(readFileSync(path, 'utf8'), 'text');
});

test('D07: keys that differ only in what file names forbid stay apart', async () => {
  const store = new FileStore(folder);
  const keys = ['a/b', 'a:b', 'a_b', 'A/B', key('1', 'a'), key('1', 'a.'), key('1', '..')];
  for (const name of keys) await store.put(name, `of ${name}`);
  for (const name of keys) assert.equal(await store.get(name), `of ${name}`);
  assert.equal(files().length, keys.length);
});

test('D08: no key is too odd for the file store, and none leads out of its folder', async () => {
  const inside = join(folder, 'inside');
  const store = new FileStore(inside);
  const keys = [
    'x'.repeat(1000),
    '漢字/漢字',
    '',
    '_',
    '../../outside',
    '/etc/outside',
    'nul\0',
    '.',
  ];
  for (const name of keys) await store.put(name, `of ${name}`);
  for (const name of keys) assert.equal(await store.get(name), `of ${name}`);
  assert.equal(files(inside).length, keys.length);
  assert.equal(files().length, keys.length);
});

test('D09: a memory store without a bound keeps everything', () => {
  const store = new MemoryStore({ maxBytes: Number.POSITIVE_INFINITY });
  for (let at = 0; at < 2000; at++) store.put(`${at}`, `content ${at}`);
  assert.equal(store.size, 2000);
  assert.equal(store.get('0'), 'content 0');
});

test('D10: the file store replaces a content whole and leaves no litter', async () => {
  const store = new FileStore(folder);
  const texts = Array.from({ length: 20 }, (_, at) => `${at}`.repeat(50_000));
  const reads = [];
  await store.put(key('1'), texts[0]);
  await Promise.all(
    texts.map(async (text) => {
      await store.put(key('1'), text);
      reads.push(await store.get(key('1')));
    }),
  );
  for (const text of reads) assert.ok(texts.includes(text), 'a mixture was read');
  assert.equal(files().length, 1);
});

test('D11: a put that fails removes its temporary file', async () => {
  const store = new FileStore(folder);
  // A folder stands where the file should: it can be written beside it but not take its place.
  mkdirSync(join(folder, 'chat', '00', '1'.repeat(62), 'in the way'), { recursive: true });
  await assert.rejects(store.put(`chat/00${'1'.repeat(62)}`, 'text'));
  assert.deepEqual(files(), []);
});

test('the file store says so when the disk cannot be read', async () => {
  const store = new FileStore(folder);
  writeFileSync(join(folder, 'chat'), 'a file where a folder should be');
  await assert.rejects(store.get(key('1')), { code: 'ENOTDIR' });
  await assert.rejects(store.put(key('1'), 'text'));
});

test('over its bytes the file store lets the contents go that were put first', async () => {
  const store = new FileStore(folder, { maxBytes: 1000 });
  const text = 'x'.repeat(300);
  for (let at = 1; at <= 5; at++) {
    await store.put(key(`${at}`), text);
    // Their ages would be the same to the clock of some file systems.
    const path = join(folder, 'chat', '00', `${at}`.padStart(62, '0'));
    utimesSync(path, at, at);
  }
  const kept = [];
  for (let at = 1; at <= 5; at++) if (await store.has(key(`${at}`))) kept.push(at);
  assert.deepEqual(kept, [3, 4, 5]);
  await assert.rejects(store.put(key('6'), 'x'.repeat(1001)), RangeError);
  assert.equal(await store.get(key('5')), text);
});

test('the bound holds over what an earlier process put, and spares checkpoints', async () => {
  const checkpoint = `chat/checkpoints/${'c'.repeat(64)}`;
  const earlier = new FileStore(folder);
  await earlier.put(checkpoint, 'x'.repeat(5000));
  for (let at = 1; at <= 5; at++) await earlier.put(key(`${at}`), 'x'.repeat(300));
  const store = new FileStore(folder, { maxBytes: 1000 });
  await store.put(key('6'), 'new');
  assert.equal((await store.get(checkpoint)).length, 5000);
  assert.equal(await store.get(key('6')), 'new');
  const sizes = files()
    .filter((entry) => !entry.parentPath.includes('checkpoints'))
    .map((entry) => statSync(join(entry.parentPath, entry.name)).size);
  assert.ok(sizes.reduce((a, b) => a + b) <= 1000, `${sizes}`);
});

test('what a killed process did not finish goes after an hour', async () => {
  mkdirSync(join(folder, '.parts'));
  for (const [name, seconds] of [
    ['old', 1],
    ['new', Date.now() / 1000],
  ]) {
    writeFileSync(join(folder, '.parts', name), 'half');
    utimesSync(join(folder, '.parts', name), seconds, seconds);
  }
  await new FileStore(folder).put(key('1'), 'text');
  assert.deepEqual(readdirSync(join(folder, '.parts')), ['new']);
});

test('a lock that a killed process left does not stand for long', async () => {
  const path = join(folder, 'chat', '00', `${'1'.padStart(62, '0')}.lock`);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, '');
  utimesSync(path, 1, 1);
  assert.equal(await new FileStore(folder).swap(key('1'), 'text', undefined), true);
  assert.ok(!existsSync(path));
});

test('an encrypted content is nowhere in the store, and is refused elsewhere or changed', async () => {
  const inner = new MemoryStore();
  const store = new EncryptedStore(inner, new Uint8Array(32).fill(1));
  await store.put(key('1'), 'a secret of 22 letters');
  await store.put(key('2'), 'a secret of 22 letters');
  const closed = inner.get(key('1'));
  assert.notEqual(closed, inner.get(key('2')), 'each with a vector of its own');
  assert.ok(!Buffer.from(closed, 'base64').includes('secret'));
  const corrupt = { name: 'TidemarkError', code: 'corrupt' };
  inner.put(key('2'), closed);
  await assert.rejects(store.get(key('2')), corrupt, 'moved');
  inner.put(key('1'), closed.replace(/.{4}$/, 'AAAA'));
  await assert.rejects(store.get(key('1')), corrupt, 'changed');
  inner.put(key('1'), closed);
  const other = new EncryptedStore(inner, new Uint8Array(32).fill(2));
  await assert.rejects(other.get(key('1')), corrupt, 'another secret');
  assert.equal(await store.get(key('1')), 'a secret of 22 letters');
});

test('a checkpoint that was changed in the store is refused', async () => {
  const store = new MemoryStore();
  const checkpoints = new CheckpointStore(store, { namespace: 'tenant' });
  await checkpoints.save('chat', '{"v":1}', undefined);
  const [name] = store.list('tenant/');
  store.put(name, store.get(name).replace('\\"v\\":1', '\\"v\\":2'));
  await assert.rejects(checkpoints.load('chat'), { name: 'TidemarkError', code: 'corrupt' });
});
