// A compactor over a conversation from a file.
import { readFile } from 'node:fs/promises';
import { Compactor, type CompactorEvent, type Outcome, TidemarkError } from '../index.js';
import { FileStore } from '../stores/file.js';
import { EXIT, Failure, reason } from './failure.js';
import { type Input, located } from './input.js';
import type { Run } from './run.js';
import { engineOptions } from './settings.js';
import { type Meter, summarizerOf } from './summarizer.js';

/** Opens a compactor with the settings in force, from a checkpoint if its file is there. */
export async function compactorFor(
  run: Run,
  input: Input,
  onEvent?: (event: CompactorEvent) => void,
  meter?: Meter,
): Promise<Compactor<object>> {
  const { values } = run.config;
  const options = engineOptions(run.config);
  const model = options.model ?? input.model;
  const recall = run.options.recall as boolean | undefined;
  const file = run.options.checkpoint as string | undefined;
  const checkpoint = file === undefined ? undefined : await readCheckpoint(file);
  try {
    return new Compactor<object>(
      {
        ...options,
        ...(model !== undefined && { model }),
        format: input.format,
        // Nobody runs the recall tool of a request that is only passed on.
        recall: recall ?? input.body === undefined,
        summarizer: summarizerOf(values.summarizer, values.baseUrl, meter),
        store: values.store === undefined ? undefined : new FileStore(values.store),
        onEvent,
      },
      checkpoint,
    );
  } catch (error) {
    if (!file || !TidemarkError.isInstance(error) || !error.code.endsWith('checkpoint'))
      throw error;
    throw new Failure(EXIT.input, `${file}: ${error.message}`);
  }
}

/** The text of a checkpoint; undefined where there is no such file yet. */
export async function readCheckpoint(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Failure(EXIT.input, `${file}: ${reason(error)}`);
  }
}

/** What compacting gave: the view as messages or as the bytes of a request. */
export type Compacted = Outcome & { messages: object[] | undefined; body: Uint8Array | undefined };

/** Brings a conversation to a compactor, once. */
export async function compactInput(
  compactor: Compactor<object>,
  input: Input,
  { signal, options }: Run,
): Promise<Compacted> {
  const request = {
    signal,
    ...(options.force === true && { force: true }),
    ...(options.dryRun === true && { dryRun: true }),
    ...(typeof options.focus === 'string' && { focus: options.focus }),
  };
  const { body, tools, system } = input;
  try {
    if (body) {
      const done = await compactor.compactBody(body, request);
      return { ...done, messages: undefined };
    }
    const done = await compactor.compact(input.messages, { ...request, tools, system });
    return { ...done, body: undefined };
  } catch (error) {
    throw located(input, error);
  }
}

/** The view as it is written: as its file was. */
export function written({ messages, body }: Compacted, { style }: Input): string | Uint8Array {
  if (body) return body;
  const view = messages ?? [];
  if (style === 'lines') return view.map((message) => `${JSON.stringify(message)}\n`).join('');
  return `${JSON.stringify(view, null, style === 'indented' ? 2 : undefined)}\n`;
}
