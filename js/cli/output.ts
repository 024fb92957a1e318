// Files that appear whole or not at all.
import { rmSync } from 'node:fs';
import { open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { EXIT, Failure, reason } from './failure.js';

/** Files that are being written. */
const parts = new Set<string>();

/** Writes a file beside its place first, so that nobody ever finds half of it. */
export async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  try {
    if (await isSpecial(path)) {
      await writeFile(path, content);
      return;
    }
    const part = join(dirname(path), `.${basename(path)}.${process.pid}.part`);
    parts.add(part);
    try {
      const file = await open(part, 'w');
      try {
        await file.writeFile(content);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(part, path);
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    } finally {
      parts.delete(part);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why =
      { ENOENT: 'no such folder', EACCES: 'permission denied', ENOSPC: 'the disk is full' }[
        String(code)
      ] ?? reason(error);
    throw new Failure(EXIT.output, `${path}: cannot be written: ${why}`);
  }
}

/** Removes what is half written; for the last moment, hence not asynchronous. */
export function removeParts(): void {
  for (const part of parts) rmSync(part, { force: true });
}

/** A pipe or a device, which cannot be replaced by another file. */
async function isSpecial(path: string): Promise<boolean> {
  try {
    return !(await stat(path)).isFile();
  } catch {
    return false;
  }
}
