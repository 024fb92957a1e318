import { TidemarkError } from '../errors.js';
import type { Store } from '../types.js';

/** Options of a memory store. */
export interface MemoryStoreOptions {
  /** Most bytes kept, two for each UTF-16 unit; Infinity for no bound. @default 64 MiB */
  maxBytes?: number | undefined;
}

/** A store in memory that lets go of what was used longest ago. */
export class MemoryStore implements Store {
  readonly #maxBytes: number;
  /** In order of use: a Map keeps the order of insertion. */
  readonly #contents = new Map<string, string>();
  #bytes = 0;

  /** @throws {TidemarkError} `invalid_option` */
  constructor(options: MemoryStoreOptions = {}) {
    const { maxBytes = 64 * 1024 * 1024 } = options;
    if (!(maxBytes > 0)) {
      const what = 'options.maxBytes: expected a number of bytes above 0';
      throw new TidemarkError('invalid_option', what, 'options.maxBytes');
    }
    this.#maxBytes = maxBytes;
  }

  /** Contents kept. */
  get size(): number {
    return this.#contents.size;
  }

  /** Bytes that they take. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws {RangeError} for a content above `maxBytes`: to promise it would be to lose it */
  put(key: string, content: string): void {
    const size = bytes(content);
    if (size > this.#maxBytes)
      throw new RangeError(`${size} bytes are more than the store may hold`);
    this.#remove(key);
    this.#contents.set(key, content);
    this.#bytes += size;
    for (const oldest of this.#contents.keys()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest);
    }
  }

  get(key: string): string | undefined {
    const content = this.#contents.get(key);
    if (content !== undefined) {
      this.#contents.delete(key);
      this.#contents.set(key, content);
    }
    return content;
  }

  has(key: string): boolean {
    return this.#contents.has(key);
  }

  delete(key: string): void {
    this.#remove(key);
  }

  list(prefix: string): string[] {
    return [...this.#contents.keys()].filter((key) => key.startsWith(prefix));
  }

  swap(key: string, content: string, previous: string | undefined): boolean {
    if (this.#contents.get(key) !== previous) return false;
    this.put(key, content);
    return true;
  }

  #remove(key: string): void {
    const old = this.#contents.get(key);
    if (old !== undefined) this.#bytes -= bytes(old);
    this.#contents.delete(key);
  }
}

function bytes(content: string): number {
  return content.length * 2;
}
