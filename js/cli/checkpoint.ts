// tidemark checkpoint: what was decided.
import type { Command } from 'commander';
import { Session } from '../index.js';
import { readCheckpoint } from './conversation.js';
import { EXIT, Failure, reason } from './failure.js';
import { isObject } from './input.js';
import { action, examples, type Run } from './run.js';
import { comma, glimpse, plural, printable } from './terminal.js';

export function addCheckpoint(program: Command): void {
  const checkpoint = program.command('checkpoint').description('look at saved decisions');
  const show = checkpoint
    .command('show')
    .description('show what a checkpoint holds; its secret stays hidden')
    .argument('<file>', 'as compact --checkpoint writes it')
    .action(action(showCheckpoint));
  examples(show, [
    ['tidemark checkpoint show chat.checkpoint', 'decisions by kind, and the summary'],
    ['tidemark checkpoint show chat.checkpoint --json | jq .summary', 'for a program'],
  ]);
}

async function showCheckpoint({ terminal }: Run, file: string): Promise<number> {
  const text = await readCheckpoint(file);
  if (text === undefined) throw new Failure(EXIT.input, `${file}: no such file`);
  try {
    // The engine's own word on whether it is one.
    Session.restore(text).dispose();
  } catch (error) {
    throw new Failure(EXIT.input, `${file}: ${reason(error)}`);
  }
  const saved = JSON.parse(text) as Record<string, unknown>;
  if (terminal.json) {
    terminal.answer({ ...saved, secret: undefined });
    return EXIT.ok;
  }
  const rows = (name: string) => (Array.isArray(saved[name]) ? (saved[name] as unknown[][]) : []);
  const head = [
    `version ${saved.tidemark}`,
    String(saved.format),
    plural(text.length, 'character'),
  ];
  terminal.print(`${terminal.title(file)}  ${terminal.color.dim(head.join(', '))}`);
  const parts = rows('parts').map(([message, part, action, name, characters]) => [
    `#${message}`,
    String(part),
    ACTIONS[String(action)] ?? String(action),
    comma(Number(characters)),
    String(name).slice(0, -16),
  ]);
  if (parts.length > 0) {
    terminal.print();
    const heads = ['message', 'part', 'decision', 'characters', 'ref'];
    for (const line of terminal.table(heads, parts)) terminal.print(line);
    const note = 'messages are counted from the first that is not a leading system message';
    terminal.print(terminal.color.dim(note));
  }
  const { summary, dropped } = saved;
  if (Array.isArray(dropped)) terminal.print(`\ndropped: ${plural(Number(dropped[0]), 'message')}`);
  for (const [model, samples, ratio] of rows('calibration')) {
    const times = (Number(ratio) / 1e6).toFixed(3);
    terminal.print(
      `calibration${model ? ` of ${model}` : ''}: ×${times} by ${plural(Number(samples), 'report')}`,
    );
  }
  for (const [key, window] of rows('windows')) {
    terminal.print(`learned window ${glimpse(String(key))}: ${comma(Number(window))}`);
  }
  if (isObject(summary)) {
    const { covered, by, version, ref } = summary;
    const about = `version ${version} by ${by}, of ${plural(Number(covered), 'message')}, ref ${ref}`;
    terminal.print(`\n${terminal.title('Summary')}  ${terminal.color.dim(about)}`);
    terminal.print(printable(String(summary.text)));
  }
  return EXIT.ok;
}

/** Kinds of decisions as a checkpoint spells them. */
const ACTIONS: Record<string, string> = {
  o: 'offloaded',
  e: 'elided',
  c: 'cleared',
  d: 'duplicate',
  s: 'superseded',
  r: 'removed',
};
