// What every command gets, and what becomes of how it ends.
import { type Command, Option } from 'commander';
import { EXIT } from './failure.js';
import { type Input, type ReadOptions, read } from './input.js';
import { type Config, configure } from './settings.js';
import { plural, Terminal } from './terminal.js';

/** One run of a command. */
export interface Run {
  terminal: Terminal;
  /** Aborted by Ctrl-C. */
  signal: AbortSignal;
  /** The options of the command and of the program. */
  options: Record<string, unknown>;
  /** Settings from file, environment and options. */
  config: Config;
}

/** What a command returns: its exit code, or nothing where all went well. */
export type Ending = number | undefined;

/** Aborted by Ctrl-C. */
export const interruption = new AbortController();

/** Turns a handler into an action of commander. */
export function action<A extends unknown[]>(
  handler: (run: Run, ...args: A) => Promise<Ending> | Ending,
): (this: Command, ...args: A) => Promise<void> {
  return async function (...args) {
    const options = this.optsWithGlobals();
    const { json = false, color, quiet = false } = options;
    const terminal = new Terminal({ json, color, quiet });
    const config = configure(options);
    const run = { terminal, signal: interruption.signal, options, config };
    process.exitCode = (await handler(run, ...args)) ?? EXIT.ok;
  };
}

/** An option with a few values. */
export const choice = (flags: string, about: string, values: readonly string[]) =>
  new Option(flags, about).choices(values);

/** The examples of a command, under its help. */
export function examples(command: Command, lines: readonly (readonly [string, string])[]): Command {
  const text = lines.map(([line, about]) => `  # ${about}\n  $ ${line}`).join('\n');
  return command.addHelpText('after', `\nExamples:\n${text}`);
}

/** Reads a conversation, showing how far, and says what could not be read of it. */
export async function open(run: Run, path: string): Promise<Input> {
  const { terminal, signal, config } = run;
  const bar = terminal.progress('reading');
  try {
    const options: ReadOptions = {
      format: config.values.format as ReadOptions['format'],
      signal,
      progress: (done, size) => size !== undefined && size > 1 << 22 && bar.to(done, size),
    };
    const input = await read(path, options);
    bar.stop();
    warnOf(run, input);
    return input;
  } finally {
    bar.stop();
  }
}

/** Warnings shown one by one. */
const SHOWN = 5;

export function warnOf({ terminal }: Run, input: Input): void {
  for (const { line, column, message } of input.warnings.slice(0, SHOWN)) {
    terminal.warn(`${input.name}:${line}:${column}: ${message}`);
  }
  const more = input.warnings.length - SHOWN;
  if (more > 0) terminal.warn(`${input.name}: ${plural(more, 'more line')} could not be read`);
}
