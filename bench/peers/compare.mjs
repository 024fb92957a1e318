// tidemark and other packages on the same recorded sessions, windows and summarizer.
//
//   npm --prefix js run bench:peers                        all of it, a quarter of an hour
//   npm --prefix js run bench:peers -- --window 32768 --only lovia --only tidemark
//   npm --prefix js run bench:peers -- --resume            goes on where a run was ended
//   npm --prefix js run bench:peers -- --resume --print    only prints what results.json holds
//
// Prints a table for each window; --print also the two that the README shows. Each policy at each
// window is one entry of results.json beside this file, written as soon as it is known: a run
// replaces those that it measures and keeps the others, so that windows and policies can be
// measured one by one.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { ANTHROPIC_PRICES, callsOf, OPENAI_PRICES, replay } from '../../pkg/replay/index.js';
import { recorded, transcriptsIn } from '../transcripts.mjs';
import { policies } from './policies.mjs';
import { readmeTable, summaryTable, windowTable } from './table.mjs';

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
    /** Where the results are kept; without it, results.json if sessions and prices are its own. */
    out: { type: 'string' },
    /** Measures only what is not there yet. */
    resume: { type: 'boolean', default: false },
    /** Measures nothing. */
    print: { type: 'boolean', default: false },
  },
});

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const python = process.env.TIDEMARK_PEERS_PYTHON ?? 'python3';
const named = (parts, name) => !parts || parts.some((part) => name.includes(part));

// ---- what goes in ------------------------------------------------------------------

const sessions = (options.data ? transcriptsIn(options.data) : recorded()).filter(
  ({ name, messages }) => named(options.session, name) && callsOf(messages).length > 0,
);

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
const usual = !(options.data || options.session) && options.prices === 'openai';
const out = options.out ?? (usual ? here('results.json') : undefined);
/** What must be alike for results to stand beside each other. */
const about = { tokenizer: 'o200k_base', prices, sessions: sessions.map(({ name }) => name) };
const results = kept();
const started = performance.now();

for (const window of windows) {
  for (const { name, packages, make } of chosen) {
    const before = results.findIndex((entry) => entry.window === window && entry.policy === name);
    if (options.print || (options.resume && before >= 0)) continue;
    const reports = [];
    for (const session of sessions) {
      say(`${window}: ${name}: ${session.name}`);
      reports.push({ session: session.name, ...(await run(make, session.messages, window)) });
    }
    const versions = { node: process.version, ...Object.fromEntries(packages.map(versionOf)) };
    const entry = { window, policy: name, versions, total: total(reports), sessions: reports };
    if (before >= 0) results[before] = entry;
    else results.push(entry);
    save();
  }
}
say('');

/** The results of earlier runs over the same sessions. */
function kept() {
  if (!out || !existsSync(out)) return [];
  const { results: earlier, ...rest } = JSON.parse(readFileSync(out, 'utf8'));
  return JSON.stringify(rest) === JSON.stringify(about) ? earlier : [];
}

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

/** Writes what is known so far, an entry a line, in place of what was there. */
function save() {
  if (!out) return;
  const rank = ({ policy }) => policies.findIndex(({ name }) => name === policy);
  results.sort((a, b) => a.window - b.window || rank(a) - rank(b));
  const lines = results.map((entry) => JSON.stringify(entry)).join(',\n');
  const head = JSON.stringify(about).slice(0, -1);
  writeFileSync(`${out}.part`, `${head},"results":[\n${lines}\n]}\n`);
  renameSync(`${out}.part`, out);
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

/** The name and the version of a package that takes part. */
function versionOf(name) {
  const path = name === 'tidemark' ? '../../pkg' : `node_modules/${name}`;
  const file = here(`${path}/package.json`);
  if (existsSync(file)) return [name, JSON.parse(readFileSync(file, 'utf8')).version];
  const code = `import importlib.metadata as m; print(m.version(${JSON.stringify(name)}))`;
  return [name, spawnSync(python, ['-c', code], { encoding: 'utf8' }).stdout.trim()];
}

for (const window of windows) {
  const shown = results.filter((entry) => {
    return entry.window === window && named(options.only, entry.policy);
  });
  const calls = Math.max(0, ...shown.map((entry) => entry.total.calls));
  console.log(`\n${window} tokens, ${sessions.length} sessions, ${calls} calls\n`);
  console.log(windowTable(shown));
}

if (options.print) {
  console.log(`\nFor the README: 32k, and all windows\n\n${readmeTable(results)}`);
  console.log(`\n${summaryTable(results)}`);
}
if (out) console.log(`\n${options.print ? 'read from' : 'written to'} ${out}`);
