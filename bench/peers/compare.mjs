// tidemark and other packages on the same recorded sessions, windows and summarizer.
//
//   npm --prefix js run bench:peers                        all of it, half an hour
//   npm --prefix js run bench:peers -- --window 32768 --only lovia --only tidemark
//
// Prints a table for each window and writes everything to results.json beside this file, unless
// other options than the window narrow the run.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { ANTHROPIC_PRICES, callsOf, OPENAI_PRICES, replay } from '../../pkg/replay/index.js';
import { policies } from './policies.mjs';

const { values: options } = parseArgs({
  options: {
    /** Context windows, tokens. */
    window: { type: 'string', multiple: true, default: ['16384', '32768', '65536', '131072'] },
    /** Parts of policy names; the others are left out. */
    only: { type: 'string', multiple: true },
    /** A folder of transcripts to use instead: .json or .json.gz, OpenAI Chat messages. */
    data: { type: 'string' },
    /** Parts of transcript names; the others are left out. */
    session: { type: 'string', multiple: true },
    prices: { type: 'string', default: 'openai' },
    /** Writes the results here. */
    out: { type: 'string' },
  },
});

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const python = process.env.TIDEMARK_PEERS_PYTHON ?? 'python3';
const named = (parts, name) => !parts || parts.some((part) => name.includes(part));

// ---- what goes in ------------------------------------------------------------------

function transcriptsIn(folder) {
  return readdirSync(folder)
    .filter((file) => /\.json(\.gz)?$/.test(file))
    .map((file) => {
      const bytes = readFileSync(join(folder, file));
      const text = file.endsWith('.gz') ? gunzipSync(bytes) : bytes;
      return { name: basename(file).replace(/\.json(\.gz)?$/, ''), messages: JSON.parse(text) };
    });
}

const sessions = (
  options.data
    ? transcriptsIn(options.data)
    : [...transcriptsIn(here('sessions')), ...transcriptsIn(here('../../tests/data'))]
).filter(({ name, messages }) => named(options.session, name) && callsOf(messages).length > 0);

const prices = { openai: OPENAI_PRICES, anthropic: ANTHROPIC_PRICES }[options.prices];
if (!prices) throw new Error('--prices: openai or anthropic');

const known = new Map();
const plain = { disallowedSpecial: new Set() };

/** Tokens by o200k_base, for every policy alike. */
function count(text) {
  let tokens = known.get(text);
  if (tokens === undefined) {
    tokens = countTokens(text, plain);
    known.set(text, tokens);
  }
  return tokens;
}

// ---- the run -----------------------------------------------------------------------

const chosen = policies.filter(({ name }) => named(options.only, name));
const windows = options.window.map(Number);
const whole = !(options.only || options.data || options.session) && options.prices === 'openai';
const out = options.out ?? (whole ? here('results.json') : undefined);
const results = [];
/** Versions of the packages that take part; looked up once. */
let found;
const started = performance.now();

for (const { name, make } of chosen) {
  for (const window of windows) {
    const reports = [];
    for (const session of sessions) {
      say(`${window}: ${name}: ${session.name}`);
      reports.push({ session: session.name, ...(await run(make, session.messages, window)) });
    }
    results.push({ window, policy: name, total: total(reports), sessions: reports });
    save();
  }
}
say('');

async function run(make, messages, window) {
  const { policy, close } = make(window, { count, python });
  try {
    return await replay(messages, policy, { window, count, prices });
  } catch (error) {
    return { error: error.message };
  } finally {
    close();
  }
}

/** Writes what is known so far: the run is long. */
function save() {
  if (!out) return;
  const about = { node: process.version, tokenizer: 'o200k_base', prices, versions: versions() };
  writeFileSync(out, `${JSON.stringify({ ...about, results }, null, 1)}\n`);
}

function say(text) {
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text && `${seconds} s  ${text}`}`);
  else if (text) process.stderr.write(`${seconds} s  ${text}\n`);
}

/** Sums over sessions; sessions that a policy failed on are left out, and counted. */
function total(reports) {
  const done = reports.filter((report) => !report.error);
  const sum = (pick) => done.reduce((all, report) => all + pick(report), 0);
  const calls = sum((report) => report.calls);
  const kinds = ['used', 'visible', 'recallable', 'lost'];
  return {
    failed: reports.length - done.length,
    calls,
    cost: sum((report) => report.cost),
    summaryCost: sum((report) => report.summaryCost),
    summaries: sum((report) => report.summaries),
    rewrites: sum((report) => report.rewrites),
    refused: sum((report) => report.refused),
    over: sum((report) => report.over),
    retention: Object.fromEntries(
      kinds.map((kind) => [kind, sum((report) => report.retention[kind])]),
    ),
    meanMilliseconds: sum((report) => report.work.mean * report.calls) / Math.max(calls, 1),
    maxMilliseconds: Math.max(0, ...done.map((report) => report.work.max)),
  };
}

// ---- what comes out ----------------------------------------------------------------

function versions() {
  if (found) return found;
  found = {};
  for (const name of new Set(chosen.flatMap((policy) => policy.packages))) {
    const path = name === 'tidemark' ? '../../pkg' : `node_modules/${name}`;
    try {
      found[name] = JSON.parse(readFileSync(here(`${path}/package.json`), 'utf8')).version;
    } catch {
      const code = `import importlib.metadata as m; print(m.version(${JSON.stringify(name)}))`;
      found[name] = spawnSync(python, ['-c', code], { encoding: 'utf8' }).stdout.trim();
    }
  }
  return found;
}

const share = (part, all) => (all === 0 ? '–' : `${((100 * part) / all).toFixed(0)} %`);

function row({ policy, total: { retention: kept, ...all } }) {
  return [
    all.failed > 0 ? `${policy} (failed on ${all.failed})` : policy,
    `${(all.cost / 1e6).toFixed(2)}`,
    share(all.summaryCost, all.cost),
    all.rewrites,
    kept.used,
    share(kept.visible, kept.used),
    share(kept.recallable, kept.used),
    share(kept.lost, kept.used),
    all.refused,
    all.over,
    all.meanMilliseconds.toFixed(1),
  ];
}

const HEAD = [
  'policy',
  'cost, M',
  'summaries',
  'rewrites',
  'uses',
  'visible',
  'recallable',
  'lost',
  'refused',
  'over',
  'ms a call',
];

for (const window of windows) {
  const rows = results.filter((result) => result.window === window).map(row);
  const calls = Math.max(0, ...results.map((result) => result.total.calls));
  console.log(`\n${window} tokens, ${sessions.length} sessions, ${calls} calls\n`);
  const line = (cells) => `| ${cells.join(' | ')} |`;
  console.log(line(HEAD));
  console.log(line(HEAD.map((_, at) => (at === 0 ? '---' : '---:'))));
  for (const cells of rows) console.log(line(cells));
}

if (out) console.log(`\nwritten to ${out}`);
