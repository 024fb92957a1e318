import { TidemarkError } from '../errors.js';
import type { Store } from '../types.js';
import { encode } from './text.js';

/** A checkpoint as a store has it. */
export interface SavedCheckpoint {
  checkpoint: string;
  /** Counts the saves of the conversation, from 1. */
  revision: number;
}

/** Options of a checkpoint store. */
export interface CheckpointStoreOptions {
  /** Keeps the conversations of one tenant apart from those of others. @default 'tidemark' */
  namespace?: string | undefined;
}

/**
 * Saves checkpoints in any store, so that of two workers on one conversation the second cannot
 * overwrite what the first saved. Where the store has `swap` that holds whatever they do; where it
 * has none, a save that comes between another's reading and writing is lost.
 */
export class CheckpointStore {
  readonly #store: Store;
  readonly #namespace: string;

  /** @throws {TidemarkError} `invalid_option` */
  constructor(store: Store, options: CheckpointStoreOptions = {}) {
    const { namespace = 'tidemark' } = options;
    if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(namespace)) {
      const what = 'options.namespace: expected up to 64 letters, digits, ., _ or -, not . first';
      throw new TidemarkError('invalid_option', what, 'options.namespace');
    }
    this.#store = store;
    this.#namespace = namespace;
  }

  /**
   * What was saved last.
   * @throws {TidemarkError} `corrupt`
   */
  async load(conversation: string): Promise<SavedCheckpoint | undefined> {
    const text = await this.#store.get(await this.#key(conversation));
    return text === undefined ? undefined : read(text, conversation);
  }

  /**
   * Saves a checkpoint over the one that was loaded, undefined where there was none.
   * @returns what is now saved, for the next save
   * @throws {TidemarkError} `conflict` where another one was saved meanwhile: load that, restore
   *   from it and compact again
   */
  async save(
    conversation: string,
    checkpoint: string,
    over: SavedCheckpoint | undefined,
  ): Promise<SavedCheckpoint> {
    const key = await this.#key(conversation);
    const held = await this.#store.get(key);
    const revision = held === undefined ? 0 : (await read(held, conversation)).revision;
    const saved = { checkpoint, revision: revision + 1 };
    if (revision !== (over?.revision ?? 0)) throw conflict(conversation, over, revision);
    const text = JSON.stringify({ ...saved, sha256: await sha256(checkpoint) });
    if (!this.#store.swap) await this.#store.put(key, text);
    else if (!(await this.#store.swap(key, text, held))) {
      throw conflict(conversation, over, revision + 1);
    }
    return saved;
  }

  /** Forgets the checkpoint of a conversation, where the store can. */
  async delete(conversation: string): Promise<void> {
    await this.#store.delete?.(await this.#key(conversation));
  }

  async #key(conversation: string): Promise<string> {
    return `${this.#namespace}/checkpoints/${await sha256(conversation)}`;
  }
}

async function read(text: string, conversation: string): Promise<SavedCheckpoint> {
  try {
    const { checkpoint, revision, sha256: digest } = JSON.parse(text);
    if (digest === (await sha256(checkpoint))) return { checkpoint, revision };
  } catch {}
  throw new TidemarkError('corrupt', `the checkpoint of ${conversation} is not what was saved`);
}

function conflict(conversation: string, over: SavedCheckpoint | undefined, revision: number) {
  const what = `${conversation}: revision ${revision} was saved over ${over?.revision ?? 'nothing'}`;
  return new TidemarkError('conflict', `${what}; load it and compact again`);
}

async function sha256(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-256', encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
