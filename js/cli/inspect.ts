// tidemark inspect: where the tokens are.
import { type Command, Option } from 'commander';
import { type MessageSize, type PartSize, type Problem, Session } from '../index.js';
import { EXIT } from './failure.js';
import {
  type Input,
  isLarge,
  located,
  nameOf,
  pieces,
  type ReadOptions,
  type Warning,
} from './input.js';
import { action, choice, examples, open, type Run, warnOf } from './run.js';
import { CHOICES, engineOptions } from './settings.js';
import { type BarRow, comma, glimpse, percent, plural, type Terminal } from './terminal.js';
import { beginning } from './words.js';

export function addInspect(program: Command): void {
  const command = program
    .command('inspect')
    .description('show where the tokens of a conversation are')
    .argument('<file>', 'JSON, JSONL, a request body or a session log; - is stdin')
    .option('-w, --window <tokens>', 'context window, to show how full it is')
    .addOption(
      new Option('--top <number>', 'how many of the biggest results, tools and duplicates').default(
        '10',
        '10',
      ),
    )
    .option('--messages', 'a line for every message')
    .option('--model <id>', 'model, which tells how text is counted')
    .addOption(choice('--tokenizer <family>', 'how text is counted', CHOICES.tokenizer))
    .addOption(choice('--format <name>', 'wire format, where it is not found out', CHOICES.format))
    .action(action(inspect));
  examples(command, [
    ['tidemark inspect session.jsonl', 'kinds, tools, biggest results, duplicates, problems'],
    ['tidemark inspect request.json -w 200k', 'a request body, tools and system prompt included'],
    ['tidemark inspect - --json < chat.json | jq .kinds', 'for a program'],
  ]);
}

/** What was found; sizes are tokens. */
export interface Inspection {
  file: string;
  kind: Input['kind'];
  messages: number;
  tokens: number;
  /** Tools and system prompt that stand beside the messages. */
  beside: number;
  window: number | null;
  /** Tokens as a share of what the window leaves for the prompt. */
  full: number | null;
  roles: Share[];
  kinds: Share[];
  tools: ToolShare[];
  biggest: Big[];
  duplicates: Duplicate[];
  problems: Problem[];
  /** Every message; null where the file was too large to keep them. */
  perMessage: { index: number; role: string; tokens: number }[] | null;
  warnings: Warning[];
}

interface Share {
  name: string;
  tokens: number;
  count: number;
}

interface ToolShare {
  name: string;
  calls: number;
  callTokens: number;
  results: number;
  resultTokens: number;
}

interface Big {
  index: number;
  kind: PartSize['kind'];
  tool: string | null;
  tokens: number;
  begins: string;
}

interface Duplicate {
  tool: string | null;
  tokens: number;
  /** Tokens that the older copies take. */
  wasted: number;
  messages: number[];
}

async function inspect(run: Run, path: string): Promise<number> {
  const top = Math.max(1, Number(run.options.top) || 10);
  const found = (await isLarge(path))
    ? await inspectPieces(run, path, top)
    : await inspectWhole(run, path, top);
  if (run.terminal.json) run.terminal.answer(found);
  else show(run, found, top);
  return EXIT.ok;
}

async function inspectWhole(run: Run, path: string, top: number): Promise<Inspection> {
  const input = await open(run, path);
  const tally = new Tally(top);
  const estimate = tally.add(run, input);
  const { window, full } = estimate;
  const perMessage = tally.perMessage;
  return { ...tally.result(input), window, full, perMessage, warnings: input.warnings };
}

async function inspectPieces(run: Run, path: string, top: number): Promise<Inspection> {
  const bar = run.terminal.progress('reading');
  const tally = new Tally(top, false);
  const options: ReadOptions = {
    format: run.config.values.format as ReadOptions['format'],
    signal: run.signal,
    progress: (done, size) => size !== undefined && bar.to(done, size),
  };
  let last: Input | undefined;
  let window: number | null = null;
  let usable: number | null = null;
  const warnings: Warning[] = [];
  try {
    for await (const piece of pieces(path, options)) {
      if (piece.messages.length > 0 || last === undefined) last = piece;
      warnings.push(...piece.warnings);
      ({ window, usable } = tally.add(run, piece));
    }
  } finally {
    bar.stop();
  }
  if (!last) throw new Error(`${nameOf(path)}: nothing was read`);
  warnOf(run, { ...last, warnings });
  const result = tally.result(last);
  const full = usable === null ? null : result.tokens / usable;
  return { ...result, window, full, perMessage: null, warnings };
}

/** Adds up conversations, or the pieces of one. */
class Tally {
  readonly #top: number;
  readonly #roles = new Map<string, Share>();
  readonly #kinds = new Map<string, Share>();
  readonly #tools = new Map<string, ToolShare>();
  readonly #results = new Map<number, Duplicate>();
  readonly perMessage: { index: number; role: string; tokens: number }[] = [];
  readonly #keeps: boolean;
  #biggest: Big[] = [];
  #problems: Problem[] = [];
  #messages = 0;
  #tokens = 0;
  #beside = 0;

  /** @param keeps whether the size of every message is kept */
  constructor(top: number, keeps = true) {
    this.#top = top;
    this.#keeps = keeps;
  }

  add(run: Run, input: Input) {
    const options = engineOptions(run.config);
    const model = options.model ?? input.model;
    const session = new Session<object>({
      ...options,
      ...(model !== undefined && { model }),
      format: input.format,
      // Equal contents have equal digests in sessions with one secret.
      secret: '0'.repeat(32),
    });
    try {
      if (input.body) {
        session.planBody(input.body, { dryRun: true });
      } else {
        session.setTools(input.tools);
        session.setSystem(input.system);
        session.sync(input.messages);
      }
      const estimate = session.estimate();
      const sizes = session.sizes();
      this.#count(sizes, input.messages);
      const problems = session.problems();
      const before = this.#messages - sizes.length;
      this.#problems.push(...problems.map((one) => ({ ...one, index: one.index + before })));
      const own = sizes.reduce((sum, { tokens }) => sum + tokens, 0);
      this.#beside += Math.max(0, estimate.tokens - own);
      return estimate;
    } catch (error) {
      throw located(input, error);
    } finally {
      session.dispose();
    }
  }

  #count(sizes: readonly MessageSize[], messages: readonly object[]): void {
    for (const [at, { role, tokens, parts }] of sizes.entries()) {
      const index = this.#messages++;
      this.#tokens += tokens;
      if (this.#keeps) this.perMessage.push({ index, role, tokens });
      share(this.#roles, role, tokens);
      let framing = tokens;
      for (const part of parts) {
        framing -= part.tokens;
        share(this.#kinds, part.kind, part.tokens);
        this.#part(part, index, messages[at]);
      }
      if (framing > 0) share(this.#kinds, 'framing', framing);
    }
  }

  #part(part: PartSize, index: number, message: unknown): void {
    const { kind, tokens, digest } = part;
    const tool = part.tool ?? null;
    if (kind === 'call' || kind === 'result') {
      const name = tool ?? '(unknown)';
      const known = this.#tools.get(name) ?? {
        name,
        calls: 0,
        callTokens: 0,
        results: 0,
        resultTokens: 0,
      };
      this.#tools.set(name, known);
      known[kind === 'call' ? 'calls' : 'results'] += 1;
      known[kind === 'call' ? 'callTokens' : 'resultTokens'] += tokens;
    }
    if (kind === 'result' && tokens >= LEAST) {
      const same = this.#results.get(digest) ?? { tool, tokens, wasted: -tokens, messages: [] };
      this.#results.set(digest, same);
      same.wasted += tokens;
      same.messages.push(index);
    }
    const least = this.#biggest.at(-1)?.tokens ?? 0;
    if (this.#biggest.length < this.#top || tokens > least) {
      this.#biggest.push({ index, kind, tool, tokens, begins: beginning(message, 60) });
      this.#biggest.sort((a, b) => b.tokens - a.tokens || a.index - b.index);
      this.#biggest.length = Math.min(this.#biggest.length, this.#top);
    }
  }

  result(input: Input): Omit<Inspection, 'window' | 'full' | 'perMessage' | 'warnings'> {
    const by = (a: Share, b: Share) => b.tokens - a.tokens;
    const tools = [...this.#tools.values()];
    const size = (tool: ToolShare) => tool.callTokens + tool.resultTokens;
    return {
      file: input.name,
      kind: input.kind,
      messages: this.#messages,
      tokens: this.#tokens + this.#beside,
      beside: this.#beside,
      roles: [...this.#roles.values()].sort(by),
      kinds: [...this.#kinds.values()].sort(by),
      tools: tools.sort((a, b) => size(b) - size(a)),
      biggest: this.#biggest,
      duplicates: [...this.#results.values()]
        .filter(({ messages }) => messages.length > 1)
        .sort((a, b) => b.wasted - a.wasted),
      problems: this.#problems,
    };
  }
}

/** Results of fewer tokens are not worth a pointer. */
const LEAST = 50;

function share(shares: Map<string, Share>, name: string, tokens: number): void {
  const known = shares.get(name) ?? { name, tokens: 0, count: 0 };
  shares.set(name, known);
  known.tokens += tokens;
  known.count += 1;
}

const KINDS: Record<Input['kind'], string> = {
  messages: 'messages',
  request: 'request body',
  'claude-code': 'Claude Code session',
  codex: 'Codex session',
};

function show({ terminal, options }: Run, found: Inspection, top: number): void {
  const { print, color } = bound(terminal);
  print(`${terminal.title(found.file)}  ${color.dim(KINDS[found.kind])}`);
  const sizes = [plural(found.messages, 'message'), plural(found.tokens, 'token')];
  if (found.beside > 99) sizes.push(`${comma(found.beside)} of them tools and instructions`);
  print(sizes.join(', '));
  if (found.full !== null && found.window !== null) {
    const bar = terminal.bar(found.full, Math.min(40, terminal.width - 40));
    const full = `${percent(found.full)} of usable (window ${comma(found.window)})`;
    print(`${found.full > 1 ? color.red(bar) : color.green(bar)} ${full}`);
  }

  const section = (title: string, lines: readonly string[], note = '') => {
    if (lines.length === 0) return;
    print();
    print(terminal.title(title) + (note && color.dim(`  ${note}`)));
    for (const line of lines) print(line);
  };
  const rows = (shares: readonly Share[]): BarRow[] =>
    shares.map(({ name, tokens, count }) => {
      return { name, value: tokens, note: `${percent(tokens / found.tokens)}, ${comma(count)}` };
    });
  const most = Math.max(1, found.tokens);
  section('By kind', terminal.bars(rows(found.kinds), most), 'tokens, share, number');
  section('By role', terminal.bars(rows(found.roles), most));
  const tools = found.tools.slice(0, top).map(({ name, calls, callTokens, resultTokens }) => {
    const value = callTokens + resultTokens;
    return { name: glimpse(name, 40), value, note: plural(calls, 'call') };
  });
  section('By tool', terminal.bars(tools, most), more(found.tools.length, top));
  const biggest = found.biggest.map(({ index, kind, tool, tokens, begins }) => [
    `#${index}`,
    comma(tokens),
    glimpse(tool ? `${kind} ${tool}` : kind, 30),
    glimpse(begins, Math.max(10, terminal.width - 50)),
  ]);
  section('Biggest', terminal.table(['message', 'tokens', 'what', 'begins'], biggest));
  const wasted = found.duplicates.reduce((sum, { wasted }) => sum + wasted, 0);
  const duplicates = found.duplicates
    .slice(0, top)
    .map(({ tool, messages, wasted }) => [
      glimpse(tool ?? '(unknown)', 30),
      `${messages.length}×`,
      comma(wasted),
      glimpse(messages.map((index) => `#${index}`).join(' '), 40),
    ]);
  const note = `${comma(wasted)} tokens in older copies${more(found.duplicates.length, top, ', ')}`;
  const heads = ['tool', 'copies', 'wasted', 'messages'];
  if (duplicates.length > 0) section('Duplicate results', terminal.table(heads, duplicates), note);
  section('Messages', messageLines(terminal, found, options.messages === true));
  section('Problems', problemLines(terminal, found.problems), 'what a provider would refuse');
}

/** Lines of a chart of all messages, where one each would be too many. */
const CHART = 24;

function messageLines(terminal: Terminal, found: Inspection, all: boolean): string[] {
  const messages = found.perMessage;
  if (messages === null) return [];
  if (all || messages.length <= CHART) {
    return terminal.bars(
      messages.map(({ index, role, tokens }) => ({ name: `#${index} ${role}`, value: tokens })),
    );
  }
  const step = Math.ceil(messages.length / CHART);
  const rows: BarRow[] = [];
  for (let from = 0; from < messages.length; from += step) {
    const run = messages.slice(from, from + step);
    const value = run.reduce((sum, { tokens }) => sum + tokens, 0);
    rows.push({ name: `#${from}–${from + run.length - 1}`, value });
  }
  return terminal.bars(rows);
}

/** Places shown of each kind of problem. */
const PLACES = 5;

/** Problems by kind: how many, where, and what is done about them. */
export function problemLines(terminal: Terminal, problems: readonly Problem[]): string[] {
  const kinds = grouped(problems);
  const lines: string[] = [];
  for (const [kind, list] of kinds) {
    const places = list.slice(0, PLACES).map(({ index }) => `#${index}`);
    const rest = list.length > PLACES ? ` and ${comma(list.length - PLACES)} more` : '';
    const head = `${terminal.color.yellow(kind)} ${list.length}× at ${places.join(' ')}${rest}`;
    lines.push(` ${head}`);
    const { says = '', repair = '' } = list[0] ?? {};
    lines.push(`   provider: ${says}`, `   view:     ${repair}`);
  }
  return lines;
}

function grouped(problems: readonly Problem[]): Map<Problem['kind'], Problem[]> {
  const kinds = new Map<Problem['kind'], Problem[]>();
  for (const problem of problems) {
    const list = kinds.get(problem.kind) ?? [];
    kinds.set(problem.kind, list);
    list.push(problem);
  }
  return kinds;
}

function bound(terminal: Terminal) {
  return { print: (line?: string) => terminal.print(line), color: terminal.color };
}

const more = (count: number, top: number, before = '') =>
  count > top ? `${before}the first ${top} of ${comma(count)}` : '';
