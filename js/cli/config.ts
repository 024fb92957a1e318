// tidemark config, status and stats: what is set, and what came of it.
import { resolve } from 'node:path';
import { Argument, type Command } from 'commander';
import { Session } from '../index.js';
import { EXIT, Failure } from './failure.js';
import { keptIn, runsIn } from './journal.js';
import { action, examples, type Run } from './run.js';
import {
  engineOptions,
  FILE_NAME,
  isSetting,
  knownNames,
  NAMES,
  parseSetting,
  variableOf,
  writeSetting,
} from './settings.js';
import { keyOf, summarizerOf } from './summarizer.js';
import { comma, glimpse, percent, plural } from './terminal.js';

export function addConfig(program: Command): void {
  const config = program
    .command('config')
    .description(`settings: ${FILE_NAME}, then TIDEMARK_… variables, then options`);
  const get = config
    .command('get')
    .description('print a setting, or all of them with where they are from')
    .addArgument(new Argument('[name]').choices(NAMES))
    .action(action(getSetting));
  const set = config
    .command('set')
    .description(`write a setting to the nearest ${FILE_NAME}; without a value it is removed`)
    .addArgument(new Argument('<name>').choices(NAMES))
    .argument('[value]')
    .action(action(setSetting));
  examples(get, [
    ['tidemark config get', 'everything that is set, and by what'],
    ['tidemark config get window', 'one value'],
  ]);
  examples(set, [
    ['tidemark config set window 200k', `in the nearest ${FILE_NAME}, or a new one here`],
    ['tidemark config set compactAt 0.9', 'where a burst starts'],
    ['tidemark config set window', 'removed again'],
    ['TIDEMARK_WINDOW=128k tidemark config get window', 'the environment wins over the file'],
  ]);
}

export function addStatus(program: Command): void {
  const command = program
    .command('status')
    .description('show what the settings amount to: budget, summarizer, store')
    .option('-w, --window <tokens>', 'context window')
    .option('--store <folder>', 'a store')
    .option('--summarizer <name>', 'local, openai:MODEL or anthropic:MODEL')
    .action(action(status));
  examples(command, [
    ['tidemark status', 'of this folder'],
    ['tidemark status -w 200k', 'the watermarks of a window'],
  ]);
}

export function addStats(program: Command): void {
  const command = program
    .command('stats')
    .description('add up what was compacted with a store')
    .option('--store <folder>', 'the store')
    .action(action(stats));
  examples(command, [
    ['tidemark stats --store .tidemark', 'runs, tokens saved, summaries, by file'],
  ]);
}

function getSetting({ terminal, config }: Run, name: string | undefined): number {
  const { values, origins, file } = config;
  if (name === undefined) {
    const found = NAMES.filter((one) => values[one] !== undefined);
    if (terminal.json) {
      const settings = found.map((one) => [one, { value: values[one], from: origins[one] }]);
      terminal.answer({ file: file ?? null, settings: Object.fromEntries(settings) });
    } else if (found.length === 0) terminal.note(`nothing is set; ${knownNames()}`);
    else {
      const from = { file, environment: '', flag: 'option' };
      const rows = found.map((one) => {
        const origin = origins[one] ?? 'flag';
        return [one, String(values[one]), from[origin] || variableOf(one)];
      });
      for (const line of terminal.table(['setting', 'value', 'from'], rows)) terminal.print(line);
    }
    return EXIT.ok;
  }
  if (!isSetting(name)) throw new Failure(EXIT.usage, `${name}: unknown`, knownNames());
  const value = values[name];
  if (terminal.json) terminal.answer({ value: value ?? null, from: origins[name] ?? null });
  else if (value !== undefined) terminal.print(String(value));
  return value === undefined ? EXIT.negative : EXIT.ok;
}

async function setSetting(
  { terminal }: Run,
  name: string,
  text: string | undefined,
): Promise<number> {
  if (!isSetting(name)) throw new Failure(EXIT.usage, `${name}: unknown`, knownNames());
  const value = text === undefined ? undefined : parseSetting(name, text, name);
  if (value !== undefined) {
    engineOptions({ values: { [name]: value }, origins: { [name]: 'flag' }, file: undefined });
  }
  const file = await writeSetting(name, value);
  if (terminal.json) terminal.answer({ file, [name]: value ?? null });
  else terminal.note(`${file}: ${name} ${value === undefined ? 'removed' : `= ${value}`}`);
  return EXIT.ok;
}

async function status(run: Run): Promise<number> {
  const { terminal, config } = run;
  const { values, file } = config;
  const session = new Session(engineOptions(config));
  const { window, usable, trigger, target } = session.estimate();
  session.dispose();
  const named = values.summarizer ?? 'local';
  const key = keyOf(values.summarizer);
  if (key?.set !== false) summarizerOf(values.summarizer, values.baseUrl);
  const store = values.store === undefined ? null : resolve(values.store);
  const kept = store === null ? null : await keptIn(store);
  const found = {
    file: file ?? null,
    budget: { window, usable, trigger, target },
    summarizer: { name: named, ready: key?.set ?? true },
    store: store === null ? null : { folder: store, ...kept },
  };
  if (terminal.json) {
    terminal.answer(found);
    return EXIT.ok;
  }
  const size = (tokens: number | null) => (tokens === null ? 'unknown' : comma(tokens));
  const lines: [string, string][] = [
    ['settings', file ?? `no ${FILE_NAME} here or above`],
    ['window', window === null ? 'unknown: nothing is compacted without one' : size(window)],
  ];
  if (window !== null) {
    lines.push(['usable', `${size(usable)}: the window without the reserve for the output`]);
    lines.push(
      ['trigger', `${size(trigger)}: a burst starts`],
      ['target', `${size(target)}: it may stop`],
    );
  }
  const missing = key?.set === false ? ` (${key.variable} is not set)` : '';
  lines.push(['summarizer', named + missing]);
  const held = kept && `${plural(kept.contents, 'content')}, ${comma(kept.bytes / 1024)} KB`;
  lines.push([
    'store',
    store === null ? 'none: recall reads the conversation' : `${store}: ${held}`,
  ]);
  for (const [name, text] of lines) {
    terminal.print(`${terminal.color.bold(name.padEnd(11))} ${text}`);
  }
  return key?.set === false ? EXIT.negative : EXIT.ok;
}

async function stats({ terminal, config }: Run): Promise<number> {
  const { store } = config.values;
  if (store === undefined) {
    const hint = 'for example --store .tidemark, or tidemark config set store .tidemark';
    throw new Failure(EXIT.usage, 'stats: no store is set', hint);
  }
  const runs = await runsIn(store);
  const kept = await keptIn(store);
  const files = new Map<
    string,
    { file: string; runs: number; bursts: number; saved: number; last: string }
  >();
  const total = { runs: runs.length, bursts: 0, saved: 0, summaries: 0, byModel: 0, failures: 0 };
  for (const entry of runs) {
    const saved = Math.max(0, entry.tokensBefore - entry.tokensAfter);
    const burst = entry.reason === 'compacted' ? 1 : 0;
    const known = files.get(entry.file) ?? {
      file: entry.file,
      runs: 0,
      bursts: 0,
      saved: 0,
      last: '',
    };
    files.set(entry.file, known);
    known.runs += 1;
    known.bursts += burst;
    known.saved += saved;
    known.last = entry.at;
    total.bursts += burst;
    total.saved += saved;
    total.summaries += entry.summary ? 1 : 0;
    total.byModel += entry.summary === 'host' ? 1 : 0;
    total.failures += entry.failures;
  }
  const list = [...files.values()].sort((a, b) => b.saved - a.saved);
  if (terminal.json) {
    terminal.answer({ store: resolve(store), ...total, files: list, kept });
    return EXIT.ok;
  }
  if (runs.length === 0) {
    terminal.print(`${store}: nothing was compacted yet`);
    return EXIT.negative;
  }
  const before = runs.reduce((sum, { tokensBefore }) => sum + tokensBefore, 0);
  terminal.print(
    `${plural(total.runs, 'run')}, ${plural(total.bursts, 'burst')}, ${plural(total.saved, 'token')} saved (${percent(total.saved / Math.max(before, 1))})`,
  );
  const failed = total.failures > 0 ? `, ${plural(total.failures, 'failure')}` : '';
  terminal.print(
    `${plural(total.summaries, 'summary', 'summaries')}, ${comma(total.byModel)} by a model${failed}`,
  );
  const spaces = plural(kept.namespaces, 'conversation');
  terminal.print(
    `store: ${plural(kept.contents, 'content')} of ${spaces}, ${comma(kept.bytes / 1024)} KB`,
  );
  terminal.print();
  const rows = list
    .slice(0, 20)
    .map((one) => [
      glimpse(one.file, 60),
      comma(one.runs),
      comma(one.bursts),
      comma(one.saved),
      one.last.slice(0, 16).replace('T', ' '),
    ]);
  for (const line of terminal.table(['file', 'runs', 'bursts', 'saved', 'last'], rows)) {
    terminal.print(line);
  }
  return EXIT.ok;
}
