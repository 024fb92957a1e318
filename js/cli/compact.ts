// tidemark compact: the view that a window has room for.
import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import type { CompactorEvent, Decision } from '../index.js';
import { type Compacted, compactInput, compactorFor, written } from './conversation.js';
import { EXIT } from './failure.js';
import type { Input } from './input.js';
import { logRun } from './journal.js';
import { writeWhole } from './output.js';
import { action, choice, examples, open, type Run } from './run.js';
import { CHOICES, requireWindow } from './settings.js';
import { comma, glimpse, percent, plural, type Terminal } from './terminal.js';
import { beginning } from './words.js';

export function addCompact(program: Command): void {
  const command = engineFlags(
    program
      .command('compact')
      .description('write what to send of a conversation, so that it fits the window')
      .argument('<file>', 'the whole conversation; - is stdin')
      .option('-o, --out <file>', 'write the view there, not to standard output'),
  )
    .option('--checkpoint <file>', 'go on from these decisions, and keep the new ones there')
    .option('--force', 'compact as far as possible, whatever the size')
    .option('--focus <words>', 'what a summary should give the most room to')
    .option('--dry-run', 'say what would happen, and write nothing')
    .option('--recall', 'markers name the recall tool (default: yes, but not in request bodies)')
    .option('--no-recall', 'markers name no recall tool')
    .action(action(compact));
  examples(command, [
    [
      'tidemark compact chat.json -w 200k -o view.json',
      'the view into a file, the report on the screen',
    ],
    [
      'tidemark compact - -w 128k < request.json | curl -d @- …',
      'a request body, untouched but for the edits',
    ],
    [
      'tidemark compact chat.jsonl -w 32k --store .tidemark --checkpoint chat.checkpoint',
      'keep what leaves the view, and the decisions',
    ],
    [
      'tidemark compact chat.json -w 64k --summarizer anthropic:claude-haiku-4-5',
      'summaries by a model (ANTHROPIC_API_KEY)',
    ],
    ['tidemark compact chat.json -w 64k --dry-run', 'only the report'],
  ]);
}

/** The options that `compact`, `recall` and `replay` share. */
export function engineFlags(command: Command): Command {
  return command
    .option(
      '-w, --window <tokens>',
      'context window of the model: 128000, 200k, 1m; here or in tidemark.json',
    )
    .addOption(
      choice(
        '--preset <name>',
        'how to compact; replay --compare shows what each does',
        CHOICES.preset,
      ),
    )
    .option('--summarizer <name>', 'local (default, no network), openai:MODEL or anthropic:MODEL')
    .option('--base-url <url>', 'where the summarizer is reached')
    .option('--store <folder>', 'keep large contents that leave the view there')
    .option('--namespace <name>', 'name of the conversation in the store')
    .option('--reserve <tokens>', 'kept free for the answer (default: a quarter, at most 16,384)')
    .option(
      '--compact-at <size>',
      'compact from this size on: share of window less reserve, or tokens (default preset: 0.55)',
    )
    .option('--compact-to <size>', 'compact down to this size, likewise (default preset: 0.2)')
    .option('--tail <size>', 'newest part that stays as it is, likewise (default preset: 0.1)')
    .option('--model <id>', 'model, which tells how text is counted')
    .addOption(choice('--tokenizer <family>', 'how text is counted', CHOICES.tokenizer))
    .addOption(choice('--format <name>', 'wire format, where it is not found out', CHOICES.format));
}

async function compact(run: Run, path: string): Promise<number> {
  const { terminal, options } = run;
  requireWindow(run.config);
  const dry = options.dryRun === true;
  const out = options.out as string | undefined;
  const input = await open(run, path);
  const bar = terminal.progress('compacting');
  const started = performance.now();
  let asked = 0;
  let answered = 0;
  const heard = ({ type }: CompactorEvent) => {
    if (type === 'effect:start') asked += 1;
    if (type === 'effect:end') answered += 1;
    if (asked > 0) bar.to(answered, asked);
  };
  const compactor = await compactorFor(run, input, heard);
  let done: Compacted;
  try {
    done = await compactInput(compactor, input, run);
  } finally {
    bar.stop();
  }
  const view = written(done, input);
  if (!dry && out !== undefined) await writeWhole(out, view);
  const checkpoint = options.checkpoint as string | undefined;
  if (!dry && checkpoint !== undefined) await writeWhole(checkpoint, compactor.checkpoint());
  const { store } = run.config.values;
  if (!dry && store !== undefined) {
    const name = input.name === 'stdin' ? 'stdin' : resolve(input.name);
    await logRun(store, { file: name, milliseconds: performance.now() - started, outcome: done });
  }
  if (terminal.json) {
    const { messages, body, ...outcome } = done;
    const shown = body ? (JSON.parse(new TextDecoder().decode(body)) as unknown) : messages;
    const holds = dry || out !== undefined ? {} : { view: shown };
    terminal.answer({ file: input.name, ...outcome, warnings: input.warnings, ...holds });
  } else {
    if (!dry && out === undefined) process.stdout.write(view);
    const lines = report(terminal, input, done, dry);
    // The report of a dry run is the answer.
    for (const line of lines) dry ? terminal.print(line) : terminal.note(line);
    if (out !== undefined && !dry) terminal.note(`written to ${basename(out)}`);
  }
  return done.fits ? EXIT.ok : EXIT.negative;
}

const DONE: Partial<Record<string, string>> = {
  offloaded: 'cut to previews',
  cleared: 'cleared',
  elided: 'cut',
  duplicate: 'duplicates',
  superseded: 'asked again later',
  removed: 'reasoning removed',
  covered: 'folded into the summary',
  dropped: 'dropped',
};

/** What happened, in words. */
function report(terminal: Terminal, input: Input, done: Compacted, dry: boolean): string[] {
  const color = dry ? terminal.color : terminal.noteColor;
  const { tokensBefore, tokensAfter, usable, window, reason, fits } = done;
  const lines: string[] = [];
  const share =
    usable === null ? '' : `, ${percent(tokensAfter / usable)} of usable ${comma(usable)}`;
  const change =
    tokensBefore === tokensAfter
      ? plural(tokensAfter, 'token')
      : `${comma(tokensBefore)} → ${plural(tokensAfter, 'token')}`;
  const head = `${change}${share} (window ${comma(window ?? 0)})`;
  lines.push(`${color.bold(REASONS[reason] ?? reason)}: ${fits ? head : color.red(head)}`);
  const kinds = new Map<Decision['kind'], Decision[]>();
  for (const decision of done.decisions) {
    const list = kinds.get(decision.kind) ?? [];
    kinds.set(decision.kind, list);
    list.push(decision);
  }
  const rows = [...kinds].map(([kind, list]) => {
    const saved = list.reduce((sum, { tokensSaved }) => sum + tokensSaved, 0);
    return [DONE[kind] ?? kind, `${list.length}×`, comma(saved), glimpse(placesOf(list), 50)];
  });
  if (rows.length > 0) lines.push(...terminal.table(['what', 'times', 'saved', 'messages'], rows));
  if (done.summary) {
    const { by, tokens, covered, audit } = done.summary;
    const author = by === 'local' ? 'the local summarizer' : 'the model';
    const kept = `${comma(audit.kept)} of ${plural(audit.found, 'identifier')} kept`;
    const added = audit.appended > 0 ? `, ${comma(audit.appended)} appended` : '';
    lines.push(
      `summary of ${plural(covered, 'message')} by ${author}: ${plural(tokens, 'token')}; ${kept}${added}`,
    );
  }
  const worst = [...done.decisions].sort((a, b) => b.tokensSaved - a.tokensSaved).slice(0, 5);
  for (const { index, to, kind, tokensSaved, ref } of worst) {
    const place = to === undefined ? `#${index}` : `#${index}–${to - 1}`;
    const words = to === undefined ? `  ${beginning(input.messages[index], 40)}` : '';
    const recall = ref === undefined ? '' : `  ref ${ref}`;
    lines.push(color.dim(`  ${place} ${kind}, ${comma(tokensSaved)} saved${recall}${words}`));
  }
  const { repairs } = done;
  if (repairs.length > 0)
    lines.push(`${plural(repairs.length, 'malformed place')} mended: ${repairKinds(done)}`);
  for (const { effect, code, message } of done.failures) {
    lines.push(color.yellow(`${effect} failed (${code}): ${glimpse(message, 200)}`));
  }
  for (const notice of done.notices) lines.push(color.yellow(notice.message));
  return lines;
}

const REASONS: Partial<Record<Compacted['reason'], string>> = {
  under_trigger: 'nothing to do',
  compacted: 'compacted',
  nothing_to_compact: 'nothing can be made smaller',
  cannot_fit: 'cannot fit',
};

/** The messages concerned, each once. */
function placesOf(decisions: readonly Decision[]): string {
  const places = decisions.map(({ index, to }) =>
    to === undefined ? `#${index}` : `#${index}–${to - 1}`,
  );
  return [...new Set(places)].join(' ');
}

function repairKinds({ repairs }: Compacted): string {
  const counts = new Map<string, number>();
  for (const { kind } of repairs) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${kind} ${count}×`).join(', ');
}
