// How fast the engine is through the package, as ratios measured in one run.
//
//   npm --prefix js run bench
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Compactor, estimate, Session } from '../pkg/index.js';

const data = (name) => readFileSync(new URL(`../tests/data/${name}`, import.meta.url), 'utf8');
const session = JSON.parse(data('large.json'));

/** So many messages of a real session, each an object of its own. */
function messages(count) {
  const list = [];
  while (list.length < count) list.push(...structuredClone(session));
  list.length = count;
  return list;
}

/** Milliseconds of the middle run. */
function median(times) {
  return times.toSorted((a, b) => a - b)[times.length >> 1];
}

function time(action) {
  const start = performance.now();
  action();
  return performance.now() - start;
}

/** One more message ingested, planned and rendered, with everything before it known. */
async function warmTurn(count) {
  const list = messages(count);
  const compactor = new Compactor({ window: 200_000 });
  await compactor.compact(list);
  const times = [];
  for (let turn = 0; turn < 500; turn++) {
    list.push({ role: turn % 2 ? 'user' : 'assistant', content: `message ${turn}: all is well` });
    const start = performance.now();
    const { compacted } = await compactor.compact(list);
    if (!compacted) times.push(performance.now() - start);
  }
  compactor.dispose();
  return median(times.slice(100));
}

/** Reading a transcript for the first time, against JSON.parse of the same text. */
function coldIngest(count) {
  const list = messages(count);
  const text = JSON.stringify(list);
  const parse = [];
  const ingest = [];
  for (let run = 0; run < 40; run++) {
    parse.push(time(() => JSON.parse(text)));
    const fresh = new Session({ window: 200_000 });
    ingest.push(time(() => fresh.sync(list)));
    fresh.dispose();
  }
  return { bytes: text.length, parse: median(parse.slice(20)), ingest: median(ingest.slice(20)) };
}

const tokens = estimate(messages(2_000)).tokens;
await warmTurn(2_000); // lets the compiler of the runtime finish
const small = await warmTurn(2_000);
const large = await warmTurn(20_000);
const cold = coldIngest(2_000);
const wasm = readFileSync(new URL('../pkg/wasm/tidemark_bg.wasm', import.meta.url));

const rows = [
  ['transcript', `2,000 messages, ${tokens} tokens, ${cold.bytes} characters of JSON`],
  ['one more message: ingest, plan, render', `${small.toFixed(3)} ms`],
  ['the same at 20,000 messages', `${large.toFixed(3)} ms, ${(large / small).toFixed(2)}×`],
  ['JSON.parse of the transcript', `${cold.parse.toFixed(1)} ms`],
  [
    'first ingest, stringify included',
    `${cold.ingest.toFixed(1)} ms, ${(cold.ingest / cold.parse).toFixed(1)}×`,
  ],
  ['wasm', `${wasm.length} bytes, ${gzipSync(wasm, { level: 9 }).length} gzipped`],
];
for (const [what, result] of rows) console.log(`${what.padEnd(40)} ${result}`);
