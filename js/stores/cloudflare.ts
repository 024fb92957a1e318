import type { Store } from '../types.js';
import { decode, encode } from './text.js';

/** What is used of a KV namespace. */
export interface KVNamespaceLike {
  get(key: string, type: 'arrayBuffer'): Promise<ArrayBuffer | null>;
  put(key: string, value: string, options?: { expirationTtl?: number }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options: { prefix: string; cursor?: string }): Promise<{
    keys: { name: string }[];
    list_complete: boolean;
    cursor?: string;
  }>;
}

/** Options of a KV store. */
export interface KVStoreOptions {
  /** Seconds after which a content goes, 60 at least. @default never */
  expirationTtl?: number | undefined;
}

/**
 * A store in Cloudflare KV. What one place puts, others may miss for a minute: contents never
 * change, so nothing wrong is read, but checkpoints need another store. Contents over 25 MiB are
 * refused by KV.
 */
export class KVStore implements Store {
  readonly #kv: KVNamespaceLike;
  readonly #expirationTtl: number | undefined;

  constructor(kv: KVNamespaceLike, options: KVStoreOptions = {}) {
    this.#kv = kv;
    this.#expirationTtl = options.expirationTtl;
  }

  async put(key: string, content: string): Promise<void> {
    const expirationTtl = this.#expirationTtl;
    await this.#kv.put(key, content, expirationTtl === undefined ? {} : { expirationTtl });
  }

  async get(key: string): Promise<string | undefined> {
    const bytes = await this.#kv.get(key, 'arrayBuffer');
    return bytes === null ? undefined : decode(bytes);
  }

  async delete(key: string): Promise<void> {
    await this.#kv.delete(key);
  }

  async *list(prefix: string): AsyncGenerator<string> {
    let cursor: string | undefined;
    do {
      const page = await this.#kv.list({ prefix, ...(cursor !== undefined && { cursor }) });
      for (const { name } of page.keys) yield name;
      cursor = page.list_complete ? undefined : page.cursor;
    } while (cursor !== undefined);
  }
}

interface R2ObjectLike {
  key: string;
  etag: string;
}

/** What is used of an R2 bucket. */
export interface R2BucketLike {
  get(key: string): Promise<(R2ObjectLike & { arrayBuffer(): Promise<ArrayBuffer> }) | null>;
  head(key: string): Promise<R2ObjectLike | null>;
  put(
    key: string,
    value: Uint8Array<ArrayBuffer>,
    options?: { onlyIf?: { etagMatches?: string; etagDoesNotMatch?: string } },
  ): Promise<R2ObjectLike | null>;
  delete(key: string): Promise<void>;
  list(options: { prefix: string; cursor?: string }): Promise<{
    objects: R2ObjectLike[];
    truncated: boolean;
    cursor?: string;
  }>;
}

/** A store in a bucket of Cloudflare R2. */
export class R2Store implements Store {
  readonly #bucket: R2BucketLike;

  constructor(bucket: R2BucketLike) {
    this.#bucket = bucket;
  }

  async put(key: string, content: string): Promise<void> {
    await this.#bucket.put(key, encode(content));
  }

  async get(key: string): Promise<string | undefined> {
    const object = await this.#bucket.get(key);
    return object ? decode(await object.arrayBuffer()) : undefined;
  }

  async has(key: string): Promise<boolean> {
    return (await this.#bucket.head(key)) !== null;
  }

  async delete(key: string): Promise<void> {
    await this.#bucket.delete(key);
  }

  async *list(prefix: string): AsyncGenerator<string> {
    let cursor: string | undefined;
    do {
      const page = await this.#bucket.list({ prefix, ...(cursor !== undefined && { cursor }) });
      for (const { key } of page.objects) yield key;
      cursor = page.truncated ? page.cursor : undefined;
    } while (cursor !== undefined);
  }

  async swap(key: string, content: string, previous: string | undefined): Promise<boolean> {
    const object = await this.#bucket.get(key);
    const held = object ? decode(await object.arrayBuffer()) : undefined;
    if (held !== previous) return false;
    const onlyIf = object ? { etagMatches: object.etag } : { etagDoesNotMatch: '*' };
    return (await this.#bucket.put(key, encode(content), { onlyIf })) !== null;
  }
}

/** What is used of the storage of a Durable Object, inside a transaction and out of it. */
export interface DurableObjectStorageLike {
  get(key: string): Promise<unknown>;
  get(keys: string[]): Promise<Map<string, unknown>>;
  put(key: string, value: unknown): Promise<void>;
  delete(keys: string[]): Promise<unknown>;
  list(options: {
    prefix: string;
    startAfter?: string;
    limit: number;
  }): Promise<Map<string, unknown>>;
}

/** Bytes of a value: the storage takes 128 KiB. */
const CHUNK = 100 * 1024;
/** Keys that one call of the storage takes. */
const BATCH = 128;

/**
 * A store in the storage of a Durable Object: `new DurableObjectStore(ctx.storage)`. A content lies
 * in as many values as it needs, and is there whole or not at all.
 */
export class DurableObjectStore implements Store {
  readonly #storage: DurableObjectStorageLike & {
    transaction<T>(action: (storage: DurableObjectStorageLike) => Promise<T>): Promise<T>;
  };

  constructor(
    storage: DurableObjectStorageLike & {
      transaction<T>(action: (storage: DurableObjectStorageLike) => Promise<T>): Promise<T>;
    },
  ) {
    this.#storage = storage;
  }

  put(key: string, content: string): Promise<void> {
    return this.#storage.transaction((storage) => write(storage, key, content));
  }

  get(key: string): Promise<string | undefined> {
    return this.#storage.transaction((storage) => read(storage, key));
  }

  async has(key: string): Promise<boolean> {
    return (await this.#storage.get(key)) !== undefined;
  }

  delete(key: string): Promise<void> {
    return this.#storage.transaction((storage) => remove(storage, key));
  }

  async *list(prefix: string): AsyncGenerator<string> {
    let last: string | undefined;
    for (;;) {
      const after = last === undefined ? {} : { startAfter: last };
      const page = await this.#storage.list({ prefix, limit: 1000, ...after });
      for (const key of page.keys()) {
        if (!key.includes('#')) yield key;
        last = key;
      }
      if (page.size < 1000) return;
    }
  }

  swap(key: string, content: string, previous: string | undefined): Promise<boolean> {
    return this.#storage.transaction(async (storage) => {
      if ((await read(storage, key)) !== previous) return false;
      await write(storage, key, content);
      return true;
    });
  }
}

const chunkKeys = (key: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${key}#${at}`);

function* batches(keys: string[]): Generator<string[]> {
  for (let at = 0; at < keys.length; at += BATCH) yield keys.slice(at, at + BATCH);
}

async function write(storage: DurableObjectStorageLike, key: string, content: string) {
  await remove(storage, key);
  const bytes = encode(content);
  const keys = chunkKeys(key, Math.ceil(bytes.length / CHUNK));
  for (const [at, name] of keys.entries()) {
    await storage.put(name, bytes.slice(at * CHUNK, (at + 1) * CHUNK));
  }
  await storage.put(key, bytes.length);
}

async function read(storage: DurableObjectStorageLike, key: string): Promise<string | undefined> {
  const length = await storage.get(key);
  if (typeof length !== 'number') return undefined;
  const bytes = new Uint8Array(length);
  let end = 0;
  for (const keys of batches(chunkKeys(key, Math.ceil(length / CHUNK)))) {
    const values = (await storage.get(keys)) as Map<string, Uint8Array>;
    for (const name of keys) {
      const chunk = values.get(name);
      if (!chunk) return undefined;
      bytes.set(chunk, end);
      end += chunk.length;
    }
  }
  return decode(bytes);
}

async function remove(storage: DurableObjectStorageLike, key: string) {
  const length = await storage.get(key);
  if (typeof length !== 'number') return;
  const keys = [key, ...chunkKeys(key, Math.ceil(length / CHUNK))];
  for (const batch of batches(keys)) await storage.delete(batch);
}
