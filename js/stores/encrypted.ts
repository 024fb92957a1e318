import { TidemarkError } from '../errors.js';
import type { Store } from '../types.js';
import { decode, encode } from './text.js';

/** A `CryptoKey`, for hosts whose types know none. */
export interface SecretKey {
  readonly algorithm: { readonly name: string };
  readonly extractable: boolean;
  readonly type: string;
}

const ALGORITHM = 'AES-GCM';
/** Bytes of the initialisation vector, as NIST SP 800-38D recommends. */
const VECTOR = 12;

/**
 * Keeps contents encrypted in another store, by AES-GCM of WebCrypto. Each is bound to its key, so
 * that whoever can write to the store cannot pass one for another.
 */
export class EncryptedStore implements Store {
  readonly #store: Store;
  readonly #secret: CryptoKey | Promise<CryptoKey>;
  readonly has?: NonNullable<Store['has']>;
  readonly delete?: NonNullable<Store['delete']>;
  readonly list?: NonNullable<Store['list']>;
  readonly swap?: NonNullable<Store['swap']>;

  /**
   * @param secret an AES-GCM key, or the 16 or 32 bytes of one; it must be kept: without it
   *   everything in the store is lost
   */
  constructor(store: Store, secret: SecretKey | Uint8Array) {
    this.#store = store;
    this.#secret =
      secret instanceof Uint8Array
        ? crypto.subtle.importKey('raw', secret.slice(), ALGORITHM, false, ['encrypt', 'decrypt'])
        : (secret as CryptoKey);
    // What it is rejected with comes out where the key is used.
    if (this.#secret instanceof Promise) this.#secret.catch(() => {});
    // It can what the other store can.
    if (store.has) this.has = (key) => store.has?.(key) ?? false;
    if (store.delete) this.delete = (key) => store.delete?.(key);
    if (store.list) this.list = (prefix) => store.list?.(prefix) ?? [];
    if (store.swap) this.swap = (key, content, previous) => this.#swap(key, content, previous);
  }

  async put(key: string, content: string): Promise<void> {
    await this.#store.put(key, await this.#close(key, content));
  }

  /** @throws {TidemarkError} `corrupt` where it is not what was put, or the secret is another one */
  async get(key: string): Promise<string | undefined> {
    const text = await this.#store.get(key);
    return text === undefined ? undefined : this.#open(key, text);
  }

  async #swap(key: string, content: string, previous: string | undefined): Promise<boolean> {
    const text = await this.#store.get(key);
    const held = text === undefined ? undefined : await this.#open(key, text);
    if (held !== previous) return false;
    return (await this.#store.swap?.(key, await this.#close(key, content), text)) ?? false;
  }

  async #close(key: string, content: string): Promise<string> {
    const iv = crypto.getRandomValues(new Uint8Array(VECTOR));
    const how = { name: ALGORITHM, iv, additionalData: encode(key) };
    const closed = await crypto.subtle.encrypt(how, await this.#secret, encode(content));
    return base64(iv) + base64(new Uint8Array(closed));
  }

  async #open(key: string, text: string): Promise<string> {
    try {
      const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
      const iv = bytes.subarray(0, VECTOR);
      const how = { name: ALGORITHM, iv, additionalData: encode(key) };
      const secret = await this.#secret;
      return decode(await crypto.subtle.decrypt(how, secret, bytes.subarray(VECTOR)));
    } catch (cause) {
      const what = `${key}: not what was put there, or under another secret`;
      throw new TidemarkError('corrupt', what, key, { cause });
    }
  }
}

/** In pieces: a call takes only so many arguments. */
function base64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}
