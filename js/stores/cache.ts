import type { Store } from '../types.js';
import { decode, encode } from './text.js';

/** What is used of a `Cache`. */
export interface CacheLike {
  match(url: string): Promise<CachedResponse | undefined>;
  put(url: string, response: never): Promise<void>;
  delete(url: string): Promise<boolean>;
}

interface CachedResponse {
  readonly body: { cancel(): Promise<void> } | null;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** Options of a cache store. */
export interface CacheStoreOptions {
  /** Seconds that a content may be kept, for caches that go by it. @default 2592000, 30 days */
  maxAge?: number | undefined;
}

/**
 * A store in a cache of the Cache API, of browsers, Cloudflare Workers or Deno:
 * `new CacheStore(() => caches.open('tidemark'))`. A cache may let go of anything at any time.
 */
export class CacheStore implements Store {
  readonly #open: () => CacheLike | Promise<CacheLike>;
  readonly #maxAge: number;

  constructor(open: () => CacheLike | Promise<CacheLike>, options: CacheStoreOptions = {}) {
    this.#open = open;
    this.#maxAge = options.maxAge ?? 30 * 24 * 3600;
  }

  async put(key: string, content: string): Promise<void> {
    const headers = {
      'cache-control': `max-age=${this.#maxAge}`,
      'content-type': 'text/plain; charset=utf-8',
    };
    const response = new Response(encode(content), { headers });
    await (await this.#open()).put(url(key), response as never);
  }

  async get(key: string): Promise<string | undefined> {
    const response = await (await this.#open()).match(url(key));
    return response ? decode(await response.arrayBuffer()) : undefined;
  }

  async has(key: string): Promise<boolean> {
    const response = await (await this.#open()).match(url(key));
    await response?.body?.cancel();
    return response !== undefined;
  }

  async delete(key: string): Promise<void> {
    await (await this.#open()).delete(url(key));
  }
}

/** An address that no server has: nothing is ever fetched from it. */
function url(key: string): string {
  return `https://tidemark.invalid/${key.split('/').map(encodeURIComponent).join('/')}`;
}
