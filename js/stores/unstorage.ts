import type { Store } from '../types.js';
import { decode } from './text.js';

/** What is used of a storage of the package `unstorage`. */
export interface UnstorageLike {
  hasItem(key: string): Promise<boolean>;
  getItemRaw(key: string): Promise<unknown>;
  setItemRaw(key: string, value: string): Promise<void>;
  removeItem(key: string): Promise<void>;
  getKeys(base?: string): Promise<string[]>;
}

/** Before each content: unstorage takes what starts with `base64:` for something of its own. */
const MARK = 't:';

/**
 * A store in anything that the package `unstorage` has a driver for, such as Redis, S3 or Postgres:
 * `new UnstorageStore(createStorage({ driver }))`.
 */
export class UnstorageStore implements Store {
  readonly #storage: UnstorageLike;

  constructor(storage: UnstorageLike) {
    this.#storage = storage;
  }

  async put(key: string, content: string): Promise<void> {
    await this.#storage.setItemRaw(key, MARK + content);
  }

  async get(key: string): Promise<string | undefined> {
    const value = await this.#storage.getItemRaw(key);
    if (value === null || value === undefined) return undefined;
    // Drivers differ in what they give back of a string.
    const text = typeof value === 'string' ? value : decode(value as Uint8Array);
    return text.startsWith(MARK) ? text.slice(MARK.length) : undefined;
  }

  has(key: string): Promise<boolean> {
    return this.#storage.hasItem(key);
  }

  async delete(key: string): Promise<void> {
    await this.#storage.removeItem(key);
  }

  async *list(prefix: string): AsyncGenerator<string> {
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    for (const name of await this.#storage.getKeys(folder)) {
      const key = name.replaceAll(':', '/');
      if (key.startsWith(prefix)) yield key;
    }
  }
}
