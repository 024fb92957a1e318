import { createHash, randomUUID } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { TidemarkError } from '../errors.js';
import type { Store } from '../types.js';

/** Options of a file store. */
export interface FileStoreOptions {
  /**
   * Most bytes of contents in the folder: over it, those that were put longest ago go. Checkpoints
   * count for nothing and stay. @default Infinity: nothing is ever deleted
   */
  maxBytes?: number | undefined;
}

/** Files that a process which is gone did not finish, or a lock that it did not give back. */
const STALE_MS = 3_600_000;
const STALE_LOCK_MS = 10_000;
/** Where contents are written before they take their place. */
const PARTS = '.parts';

/**
 * A store in a folder: one file for each content, in folders by namespace and the first two
 * digits of the hash. Files appear whole or not at all. Set `namespace` to find the folder of a
 * conversation.
 */
export class FileStore implements Store {
  readonly #folder: string;
  readonly #maxBytes: number;
  /** Bytes of contents, once they have been counted. */
  #bytes: number | undefined;
  #swept = false;
  /** Evictions run one after the other. */
  #evicting: Promise<void> = Promise.resolve();

  /**
   * The folder is made on the first put.
   * @throws {TidemarkError} `invalid_option`
   */
  constructor(folder: string, options: FileStoreOptions = {}) {
    const { maxBytes = Number.POSITIVE_INFINITY } = options;
    if (!(maxBytes > 0)) {
      const what = 'options.maxBytes: expected a number of bytes above 0';
      throw new TidemarkError('invalid_option', what, 'options.maxBytes');
    }
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  /** @throws {RangeError} for a content above `maxBytes`: to promise it would be to lose it */
  async put(key: string, content: string): Promise<void> {
    const bytes = Buffer.from(content, 'utf8');
    if (bytes.length > this.#maxBytes) {
      throw new RangeError(`${bytes.length} bytes are more than the store may hold`);
    }
    await this.#write(this.#path(key), bytes);
    if (this.#maxBytes === Number.POSITIVE_INFINITY) return;
    if (this.#bytes !== undefined) this.#bytes += bytes.length;
    if (this.#bytes === undefined || this.#bytes > this.#maxBytes) {
      const turn = this.#evicting.then(() => this.#evict());
      this.#evicting = turn.catch(() => {});
      await turn;
    }
  }

  async get(key: string): Promise<string | undefined> {
    return absent(readFile(this.#path(key), 'utf8'));
  }

  async has(key: string): Promise<boolean> {
    return (await absent(stat(this.#path(key)))) !== undefined;
  }

  async delete(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  /** Keys of tidemark; of others the file names tell only the hash. */
  async *list(prefix: string): AsyncGenerator<string> {
    for (const path of await this.#files()) {
      const [, namespace, head, rest] = KEY_PATH.exec(path) ?? [];
      if (namespace === undefined || namespace.startsWith('.')) continue;
      const key = `${namespace}/${head}${rest}`;
      if (key.startsWith(prefix)) yield key;
    }
  }

  /** Under a lock file that other processes on the same folder heed too. */
  async swap(key: string, content: string, previous: string | undefined): Promise<boolean> {
    const lock = `${this.#path(key)}.lock`;
    await mkdir(dirname(lock), { recursive: true });
    if (!(await acquire(lock))) return false;
    try {
      if ((await this.get(key)) !== previous) return false;
      await this.put(key, content);
      return true;
    } finally {
      await rm(lock, { force: true });
    }
  }

  async #write(path: string, bytes: Buffer): Promise<void> {
    const parts = join(this.#folder, PARTS);
    await mkdir(parts, { recursive: true });
    await mkdir(dirname(path), { recursive: true });
    if (!this.#swept) {
      this.#swept = true;
      await sweep(parts);
    }
    const part = join(parts, randomUUID());
    try {
      await writeFile(part, bytes, { flush: true });
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  /** Counts what is there, and lets the oldest go until a tenth of the room is free. */
  async #evict(): Promise<void> {
    const found: { path: string; bytes: number; age: number }[] = [];
    let bytes = 0;
    for (const name of await this.#files()) {
      if (!CONTENT_PATH.test(name)) continue;
      const path = join(this.#folder, name);
      const file = await absent(stat(path));
      if (!file) continue;
      bytes += file.size;
      found.push({ path, bytes: file.size, age: file.mtimeMs });
    }
    if (bytes > this.#maxBytes) {
      found.sort((a, b) => a.age - b.age);
      // The newest was put just now.
      for (const { path, bytes: size } of found.slice(0, -1)) {
        if (bytes <= this.#maxBytes * 0.9) break;
        await rm(path, { force: true });
        bytes -= size;
      }
    }
    this.#bytes = bytes;
  }

  /** Every file, with slashes and relative to the folder. */
  async #files(): Promise<string[]> {
    const entries: Dirent[] =
      (await absent(readdir(this.#folder, { recursive: true, withFileTypes: true }))) ?? [];
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(this.#folder, join(entry.parentPath ?? entry.path, entry.name)))
      .map((path) => path.split(sep).join('/'));
  }

  /** Keys of tidemark are safe names already; of any other the hash is. */
  #path(key: string): string {
    const [, namespace = '.other', hash = createHash('sha256').update(key).digest('hex')] =
      KEY.exec(key) ?? [];
    return join(this.#folder, namespace, hash.slice(0, 2), hash.slice(2));
  }
}

/** Namespace, whether it is of a checkpoint, hash. */
const KEY =
  /^([A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?(?:\/checkpoints)?)\/([0-9a-f]{64})$/;
const KEY_PATH = /^(.*)\/([0-9a-f]{2})\/([0-9a-f]{62})$/;
/** Of those, what may be evicted. */
const CONTENT_PATH = /^[^/]+\/[0-9a-f]{2}\/[0-9a-f]{62}$/;

/** Undefined where there is no such file. */
async function absent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function sweep(parts: string): Promise<void> {
  for (const name of await readdir(parts)) {
    const part = join(parts, name);
    const file = await absent(stat(part));
    if (file && Date.now() - file.mtimeMs > STALE_MS) await rm(part, { force: true });
  }
}

/** Makes the lock file; gives up where somebody else keeps it. A process that is gone has none. */
async function acquire(lock: string): Promise<boolean> {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      await (await open(lock, 'wx')).close();
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const file = await absent(stat(lock));
    if (file && Date.now() - file.mtimeMs > STALE_LOCK_MS) await rm(lock, { force: true });
    else await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}
