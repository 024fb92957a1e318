// tidemark replay: a recorded session call by call, and what each call would have cost.
import type { Command } from 'commander';
import type { ChatMessage, FormatName } from '../index.js';
import { Session } from '../index.js';
import {
  type CallReport,
  callsOf,
  compactor,
  type Policy,
  type ReplayReport,
  replay,
  whole,
} from '../replay/index.js';
import { FileStore } from '../stores/file.js';
import { engineFlags } from './compact.js';
import { EXIT, Failure, reason } from './failure.js';
import { type Input, located, titleOf } from './input.js';
import { writeWhole } from './output.js';
import { money, type Prices, pricesOf } from './prices.js';
import { pageOf } from './report.js';
import { action, examples, open, type Run } from './run.js';
import { CHOICES, type EngineSettings, engineOptions, requireWindow } from './settings.js';
import { summarizerOf } from './summarizer.js';
import { comma, percent, plural, type Terminal } from './terminal.js';

export function addReplay(program: Command): void {
  const command = engineFlags(
    program
      .command('replay')
      .description('replay a recorded session with compaction: tokens and cost of every call')
      // Not required, for --compare takes a file behind it as its value: see `placed`.
      .usage('[options] <file>')
      .argument('[file]', 'the whole session; - is stdin'),
  )
    .option('--prices <table>', 'openai, anthropic, or a file with the prices of a million tokens')
    .option(
      '--compare [presets]',
      'presets side by side, with commas between; none is no compaction (default: all of them)',
    )
    .option('--html <file>', 'write one page with charts, which needs nothing else')
    .option('--calls', 'a line for every call')
    .action(action(replayFile));
  examples(command, [
    ['tidemark replay session.jsonl -w 128k', 'tokens sent, cached and rewritten, bursts, cost'],
    ['tidemark replay session.jsonl -w 32k --compare', 'every preset, and no compaction'],
    [
      'tidemark replay session.jsonl -w 32k --compare default,none --html report.html',
      'charts of two',
    ],
    [
      'tidemark replay chat.json -w 200k --prices prices.json --json',
      'your own prices, for a program',
    ],
  ]);
}

/** One policy's way through the session. */
export interface Way {
  policy: string;
  report: ReplayReport;
  /** Of all calls, in the currency of the prices. */
  cost: number;
  calls: CallReport[];
  /** It could not be run to its end. */
  error: string | null;
}

/** What is known of the session. */
export interface Replayed {
  file: string;
  title: string;
  window: number;
  usable: number;
  prices: Prices;
  messages: number;
  /** Calls are where the log has them in time; else 20 seconds apart. */
  timed: boolean;
  ways: Way[];
}

const NONE = 'none';

/** Compared are those that the engine knows. */
const PRESETS = CHOICES.preset;

async function replayFile(run: Run, named: string | undefined): Promise<number> {
  const { terminal, options, config } = run;
  const path = placed(run, named);
  const window = requireWindow(config);
  const names = policyNames(run);
  const input = await open(run, path);
  const scale = new Scale(run, input);
  const transcript = input.messages as ChatMessage[];
  const calls = callsOf(transcript).length;
  if (calls === 0) {
    throw new Failure(
      EXIT.input,
      `${input.name}: nobody answers in it: there is no call to replay`,
    );
  }
  const anthropic = scale.format === 'anthropic';
  const prices = await pricesOf(config.values.prices ?? (anthropic ? 'anthropic' : 'openai'));
  const timed = input.times.length > 0 && input.times.every((time) => time !== undefined);
  const ways: Way[] = [];
  const bar = terminal.progress('replaying');
  let done = 0;
  try {
    for (const name of names) {
      const heard: CallReport[] = [];
      const onCall = (call: CallReport) => {
        heard.push(call);
        done += 1;
        bar.to(done, calls * names.length);
      };
      const policy = policyOf(run, input, scale.format, name);
      const how = {
        window,
        prices: prices.cache,
        onCall,
        ...scale.options(),
        ...clockOf(input, timed),
      };
      const report = await replay(transcript, yielding(run, policy), how);
      const cost = (report.cost * prices.million) / 1e6;
      ways.push({ policy: name, report, cost, calls: heard, error: null });
    }
  } catch (error) {
    throw located(input, error);
  } finally {
    bar.stop();
    scale.dispose();
  }
  const { usable } = budgetOf(run);
  const title = titleOf(input);
  const messages = input.messages.length;
  const found: Replayed = {
    file: input.name,
    title,
    window,
    usable,
    prices,
    messages,
    timed,
    ways,
  };
  const html = options.html as string | undefined;
  if (html !== undefined) {
    await writeWhole(html, await pageOf(found));
    if (!terminal.json) terminal.note(`written to ${html}`);
  }
  if (terminal.json) terminal.answer(asJson(found, options.calls === true));
  else show(terminal, found, options.calls === true);
  return ways.some(({ policy, report }) => policy !== NONE && report.over > 0)
    ? EXIT.negative
    : EXIT.ok;
}

/** The policies that are wanted. */
/** The file, also where it stands right behind --compare. */
function placed({ options }: Run, path: string | undefined): string {
  const { compare } = options;
  if (path !== undefined) return path;
  if (typeof compare !== 'string' || compare === '' || namesIn(compare).some(isPolicy)) {
    throw new Failure(EXIT.usage, "missing required argument 'file'", 'a session; - is stdin');
  }
  options.compare = true;
  return compare;
}

const namesIn = (list: string) =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

const isPolicy = (name: string) => name === NONE || known(name);

function policyNames({ options, config }: Run): string[] {
  const { compare } = options;
  if (compare === undefined) return [config.values.preset ?? 'default'];
  if (compare === true) return [...PRESETS.filter(known), NONE];
  const names = namesIn(String(compare));
  const stranger = names.find((name) => !isPolicy(name));
  if (stranger !== undefined) {
    const hint = `known are ${[...PRESETS.filter(known), NONE].join(', ')}`;
    throw new Failure(EXIT.usage, `--compare: ${stranger}: unknown`, hint);
  }
  return names.length > 0 ? names : ['default', NONE];
}

function known(preset: string): boolean {
  try {
    new Session(withPreset({}, preset)).dispose();
    return true;
  } catch {
    return false;
  }
}

/** The default preset needs no name. */
const withPreset = (options: EngineSettings, preset: string) =>
  (preset === 'default' ? options : { ...options, preset }) as EngineSettings;

function policyOf(run: Run, input: Input, format: FormatName, name: string): Policy {
  if (name === NONE) return whole;
  const { values } = run.config;
  const { preset: _, ...options } = engineOptions(run.config) as EngineSettings & {
    preset?: string;
  };
  const model = options.model ?? input.model;
  const summarizer = summarizerOf(values.summarizer, values.baseUrl);
  return compactor(
    {
      ...withPreset(options, name),
      ...(model !== undefined && { model }),
      format,
      // The same figures each time.
      secret: '0'.repeat(32),
      summarizer,
      store: values.store === undefined ? undefined : new FileStore(values.store),
    },
    { tools: input.tools, system: input.system },
  );
}

/** Lets the event loop turn between calls, for progress and Ctrl-C. */
function yielding({ signal }: Run, policy: Policy): Policy {
  return async (messages, turn) => {
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    return policy(messages, turn);
  };
}

function clockOf({ times }: Input, timed: boolean) {
  if (!timed) return {};
  const start = times[0] ?? 0;
  // A clock that was set back must not make time run backwards.
  let now = 0;
  const since = times.map((time) => {
    now = Math.max(now, (time ?? start) - start);
    return now;
  });
  return { clock: (index: number) => since[index] ?? now };
}

function budgetOf(run: Run): { usable: number } {
  const session = new Session(engineOptions(run.config));
  const { usable } = session.estimate();
  session.dispose();
  return { usable: usable ?? 0 };
}

/** Sizes messages as the engine does, whatever their format. */
class Scale {
  readonly format: FormatName;
  readonly #session: Session<object>;
  readonly #texts: Session<object>;
  readonly #known = new WeakMap<object, { text: string; tokens: number }>();
  readonly #input: Input;

  constructor(run: Run, input: Input) {
    this.#input = input;
    const { values } = run.config;
    const model = values.model ?? input.model;
    const counting = {
      ...(model !== undefined && { model }),
      ...(values.tokenizer !== undefined && { tokenizer: values.tokenizer }),
    } as EngineSettings;
    this.#session = new Session<object>({ ...counting, format: input.format });
    try {
      this.#session.sync(input.messages);
    } catch (error) {
      throw located(input, error);
    }
    for (const [at, { tokens }] of this.#session.sizes().entries()) {
      const message = input.messages[at];
      if (message) this.#known.set(message, { text: JSON.stringify(message), tokens });
    }
    // The engine has found the format out.
    const { format } = JSON.parse(this.#session.checkpoint()) as { format: FormatName };
    this.format = format;
    this.#session.dispose();
    this.#session = new Session<object>({ ...counting, format });
    this.#texts = new Session<object>({ ...counting, format: 'openai-chat' });
  }

  options() {
    const { tools = [], system } = this.#input;
    const beside = system === undefined ? [...tools] : [...tools, { system }];
    return {
      count: (text: string) => this.#count(text),
      weigh: (value: unknown) => this.#weigh(value),
      ...(this.format !== 'openai-chat' && { refusal: this.#refusal }),
      tools: beside,
    };
  }

  #count(text: string): number {
    if (text === '') return 0;
    this.#texts.invalidate(0);
    this.#texts.sync([{ role: 'user', content: text }]);
    return this.#texts.sizes()[0]?.parts[0]?.tokens ?? 0;
  }

  #weigh(value: unknown): { text: string; tokens: number } {
    const object = Object(value) as object;
    const known = this.#known.get(object);
    if (known) return known;
    const text = JSON.stringify(value);
    let tokens: number | undefined;
    if (!Array.isArray(value)) {
      try {
        this.#session.invalidate(0);
        this.#session.sync([object]);
        tokens = this.#session.sizes()[0]?.tokens;
      } catch {
        // It is no message: its text is what counts.
      }
    }
    const weight = { text, tokens: tokens ?? this.#count(text) };
    this.#known.set(object, weight);
    return weight;
  }

  readonly #refusal = (messages: readonly ChatMessage[]): string | null => {
    const session = new Session<object>({ format: this.format });
    try {
      session.sync(messages);
      const [first] = session.problems();
      return first ? `messages[${first.index}]: ${first.says}` : null;
    } catch (error) {
      return reason(error);
    } finally {
      session.dispose();
    }
  };

  dispose(): void {
    this.#session.dispose();
    this.#texts.dispose();
  }
}

/** Calls at which the prefix was given up, which is what bursts do. */
const bursts = ({ report }: Way) => report.rewrites;

function asJson({ ways, prices, ...rest }: Replayed, all: boolean): unknown {
  return {
    ...rest,
    prices: {
      ...prices.cache,
      name: prices.name,
      currency: prices.currency,
      million: prices.million,
    },
    policies: ways.map((way) => ({
      policy: way.policy,
      cost: way.cost,
      currency: prices.currency,
      bursts: bursts(way),
      sent: sentBy(way),
      ...renamed(way.report),
      ...(all && { perCall: way.calls }),
    })),
  };
}

/** The cost of a report is in units of input tokens. */
function renamed({ cost, ...report }: ReplayReport) {
  return { inputTokenUnits: cost, ...report, calls: report.calls };
}

const sentBy = ({ report: { tokens } }: Way) => tokens.read + tokens.written + tokens.plain;

function show(terminal: Terminal, found: Replayed, all: boolean): void {
  const { ways, prices, window } = found;
  const first = ways[0];
  if (!first) return;
  const { calls } = first.report;
  const about = `${plural(found.messages, 'message')}, ${plural(calls, 'model call')}, window ${comma(window)}, prices ${prices.name}`;
  terminal.print(`${terminal.title(found.title)}  ${terminal.color.dim(about)}`);
  terminal.print();
  if (ways.length > 1) {
    const cheapest = Math.min(
      ...ways.filter(({ report }) => report.over === 0).map(({ cost }) => cost),
    );
    const rows = ways.map((way) => {
      const { report, cost, policy } = way;
      const { retention, refused, over, summaries } = report;
      return [
        policy,
        money(cost, prices.currency),
        report.over > 0 ? '–' : percent(cost / Math.max(cheapest, 1e-12)),
        comma(sentBy(way)),
        percent(report.tokens.read / Math.max(sentBy(way), 1)),
        comma(bursts(way)),
        retention.used > 0 ? percent(retention.visible / retention.used) : '–',
        retention.used > 0 ? percent(retention.lost / retention.used) : '–',
        comma(over),
        comma(refused),
        comma(summaries),
      ];
    });
    const heads = [
      'policy',
      'cost',
      'of best',
      'sent',
      'cached',
      'rewrites',
      'visible',
      'lost',
      'over',
      'refused',
      'summaries',
    ];
    for (const line of terminal.table(heads, rows)) terminal.print(line);
  } else one(terminal, found, first);
  if (!all) return;
  for (const way of ways) {
    terminal.print(`\n${terminal.title(way.policy)}`);
    const rows = way.calls.map(({ call, index, tokens, charge, rewritten, summaries }) => [
      `#${index}`,
      comma(tokens),
      comma(charge.read),
      comma(tokens - charge.read),
      money((charge.cost * prices.million) / 1e6, prices.currency),
      `${rewritten && call > 0 ? 'rewritten' : ''}${summaries.length > 0 ? ' summary' : ''}${tokens > window ? ' over' : ''}`.trim(),
    ]);
    const heads = ['message', 'tokens', 'cached', 'new', 'cost', ''];
    for (const line of terminal.table(heads, rows)) terminal.print(line);
  }
}

/** One policy in full. */
function one(terminal: Terminal, { window, prices }: Replayed, way: Way): void {
  const { report, cost, calls } = way;
  const sent = sentBy(way);
  const { read, written, plain } = report.tokens;
  const share = (tokens: number) => percent(tokens / Math.max(sent, 1));
  const extra =
    report.summaries > 0 ? `, ${plural(report.summaries, 'summary call')} included` : '';
  terminal.print(
    `${terminal.title(money(cost, prices.currency))} for the input of ${plural(report.calls, 'call')}${extra}`,
  );
  const bars = terminal.bars(
    [
      { name: 'sent', value: sent },
      { name: ' read from the cache', value: read, note: share(read) },
      { name: ' written to the cache', value: written, note: share(written) },
      { name: ' neither', value: plain, note: share(plain) },
    ],
    sent,
  );
  for (const line of bars) terminal.print(line);
  const { retention, refused, over, largest } = report;
  terminal.print(
    `${plural(bursts(way), 'burst')}; the largest request had ${plural(largest, 'token')}`,
  );
  if (retention.used > 0) {
    const { used, visible, recallable, lost } = retention;
    terminal.print(
      `of ${plural(used, 'use')} of identifiers from long ago: ${percent(visible / used)} visible, ${percent(recallable / used)} by recall, ${percent(lost / used)} lost`,
    );
  }
  const fault = terminal.color.red;
  if (over > 0)
    terminal.print(fault(`${plural(over, 'call')} over the window of ${comma(window)}`));
  if (refused > 0) {
    terminal.print(fault(`${plural(refused, 'view')} that a strict provider refuses:`));
    for (const [why, times] of Object.entries(report.refusals))
      terminal.print(`  ${times}× ${why}`);
  }
  terminal.print(`\n${terminal.title('Tokens by call')}`);
  for (const line of chart(terminal, calls)) terminal.print(line);
}

/** Lines of the chart. */
const CHART = 24;

function chart(terminal: Terminal, calls: readonly CallReport[]): string[] {
  const step = Math.ceil(calls.length / CHART);
  const rows = [];
  for (let from = 0; from < calls.length; from += step) {
    const run = calls.slice(from, from + step);
    const last = run.at(-1);
    const breaks = run.filter(({ rewritten }) => rewritten).length;
    const name = run.length > 1 ? `${from + 1}–${from + run.length}` : `${from + 1}`;
    const note = breaks > 0 ? `${plural(breaks, 'burst')}` : '';
    rows.push({
      name,
      value: Math.max(...run.map(({ tokens }) => tokens)),
      note: last ? note : '',
    });
  }
  return terminal.bars(rows);
}
