import type { Store } from '../types.js';

/** Options of an IndexedDB store. */
export interface IndexedDBStoreOptions {
  /** Name of the database. @default 'tidemark' */
  database?: string | undefined;
}

const CONTENTS = 'contents';

/** A store in the browser, shared by the pages and workers of an origin. */
export class IndexedDBStore implements Store {
  readonly #database: string;
  #opened: Promise<IDBDatabase> | undefined;

  /** The database is opened, and made, on first use. */
  constructor(options: IndexedDBStoreOptions = {}) {
    this.#database = options.database ?? 'tidemark';
  }

  async put(key: string, content: string): Promise<void> {
    await this.#run('readwrite', (contents) => contents.put(content, key));
  }

  get(key: string): Promise<string | undefined> {
    return this.#run<string | undefined>('readonly', (contents) => contents.get(key));
  }

  async has(key: string): Promise<boolean> {
    return (await this.#run('readonly', (contents) => contents.getKey(key))) !== undefined;
  }

  async delete(key: string): Promise<void> {
    await this.#run('readwrite', (contents) => contents.delete(key));
  }

  async *list(prefix: string): AsyncGenerator<string> {
    const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
    yield* (await this.#run('readonly', (contents) => contents.getAllKeys(range))) as string[];
  }

  async swap(key: string, content: string, previous: string | undefined): Promise<boolean> {
    let swapped = false;
    // One transaction: no other page or worker writes in between.
    await this.#run('readwrite', (contents) => {
      const found: IDBRequest<string | undefined> = contents.get(key);
      found.onsuccess = () => {
        if (found.result !== previous) return;
        swapped = true;
        contents.put(content, key);
      };
      return found;
    });
    return swapped;
  }

  /** Closes the database; the next use opens it again. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    (await opened)?.close();
  }

  /** Runs one transaction; resolves when it is complete, so that what was put is there. */
  async #run<T>(
    mode: IDBTransactionMode,
    action: (contents: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> {
    this.#opened ??= this.#open();
    const transaction = (await this.#opened).transaction(CONTENTS, mode);
    const request = action(transaction.objectStore(CONTENTS));
    await new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    return request.result;
  }

  #open(): Promise<IDBDatabase> {
    const opening = new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(this.#database, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(CONTENTS);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        // Another page deletes the database or wants a newer one, or the browser clears the site.
        const forget = () => {
          database.close();
          this.#opened = undefined;
        };
        database.onversionchange = forget;
        database.onclose = forget;
        resolve(database);
      };
    });
    opening.catch(() => {
      this.#opened = undefined;
    });
    return opening;
  }
}
