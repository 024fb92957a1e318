import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Store } from '../types.js';

/**
 * A store in a folder: one file for each content, in folders by namespace and the first two
 * digits of the hash. Files appear whole or not at all, and are never deleted: set `namespace` to
 * find the folder of a conversation.
 */
export class FileStore implements Store {
  readonly #folder: string;

  /** The folder is made on the first put. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(key: string, content: string): Promise<void> {
    const path = this.#path(key);
    await mkdir(dirname(path), { recursive: true });
    const part = `${path}.${randomUUID()}.part`;
    try {
      await writeFile(part, content, { encoding: 'utf8', flush: true });
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  async get(key: string): Promise<string | undefined> {
    try {
      return await readFile(this.#path(key), 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Keys of tidemark are safe names already; of any other the hash is. */
  #path(key: string): string {
    const own = /^([A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?)\/([0-9a-f]{64})$/.exec(key);
    const [, namespace = '.other', hash = createHash('sha256').update(key).digest('hex')] =
      own ?? [];
    return join(this.#folder, namespace, hash.slice(0, 2), hash.slice(2));
  }
}
