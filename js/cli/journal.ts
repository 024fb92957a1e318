// What was compacted with a store, a line for each run: `stats` adds it up.
import { appendFile, mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Outcome } from '../index.js';
import { EXIT, Failure, reason } from './failure.js';

/** The journal of a store. No namespace starts with a dot. */
const NAME = '.runs.jsonl';

/** One run. */
export interface Entry {
  /** When, as ISO 8601. */
  at: string;
  file: string;
  reason: Outcome['reason'];
  tokensBefore: number;
  tokensAfter: number;
  stages: string[];
  summary: 'host' | 'local' | null;
  failures: number;
  milliseconds: number;
}

export async function logRun(
  folder: string,
  { file, milliseconds, outcome }: { file: string; milliseconds: number; outcome: Outcome },
): Promise<void> {
  const { tokensBefore, tokensAfter, stages, summary, failures } = outcome;
  const entry: Entry = {
    at: new Date().toISOString(),
    file,
    reason: outcome.reason,
    tokensBefore,
    tokensAfter,
    stages,
    summary: summary?.by ?? null,
    failures: failures.length,
    milliseconds: Math.round(milliseconds),
  };
  try {
    await mkdir(folder, { recursive: true });
    // One write for each line: runs side by side do not mix.
    await appendFile(join(folder, NAME), `${JSON.stringify(entry)}\n`);
  } catch (error) {
    throw new Failure(EXIT.output, `${folder}: cannot be written: ${reason(error)}`);
  }
}

/** The runs of a store, oldest first; lines that were cut off are passed over. */
export async function runsIn(folder: string): Promise<Entry[]> {
  let text: string;
  try {
    text = await readFile(join(folder, NAME), 'utf8');
  } catch {
    return [];
  }
  const entries: Entry[] = [];
  for (const line of text.split('\n')) {
    try {
      const entry = JSON.parse(line) as Entry;
      if (typeof entry?.tokensBefore === 'number') entries.push(entry);
    } catch {}
  }
  return entries;
}

/** The contents that a store keeps. */
export interface Kept {
  contents: number;
  bytes: number;
  namespaces: number;
}

export async function keptIn(folder: string): Promise<Kept> {
  const kept: Kept = { contents: 0, bytes: 0, namespaces: 0 };
  let names: string[];
  try {
    names = await readdir(folder, { recursive: true });
  } catch {
    return kept;
  }
  const spaces = new Set<string>();
  for (const name of names) {
    const [, namespace = ''] = /^([^/\\]+)[/\\][0-9a-f]{2}[/\\][0-9a-f]{62}$/.exec(name) ?? [];
    if (namespace === '') continue;
    spaces.add(namespace);
    kept.contents += 1;
    kept.bytes += (await stat(join(folder, name))).size;
  }
  kept.namespaces = spaces.size;
  return kept;
}
