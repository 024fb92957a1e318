// How fast the engine is through the package, as ratios measured in one run.
//
//   npm --prefix js run bench
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { Compactor, estimate, Session } from '../pkg/index.js';

const data = (name) => readFileSync(new URL(`../tests/data/${name}`, import.meta.url), 'utf8');
const session = JSON.parse(data('large.json'));
const path = '/v1/chat/completions';

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

/** The same work over and over, each after a JSON.parse of the same text: milliseconds of both. */
function beside(text, action, runs = 40) {
  const parse = [];
  const times = [];
  for (let run = 0; run < runs; run++) {
    parse.push(time(() => JSON.parse(text)));
    times.push(action());
  }
  return [median(times.slice(runs / 2)), median(parse.slice(runs / 2))];
}

/** Milliseconds that a new session takes for something. */
function fresh(options, action) {
  const fresh = new Session(options);
  const took = time(() => action(fresh));
  fresh.dispose();
  return took;
}

/** Milliseconds of the local summarizer over so many messages, folded at once. */
function localSummary(list) {
  const session = new Session({ window: 100_000, tail: 2, stages: ['summarize'] });
  session.sync(list);
  const took = time(() => session.plan(list, { force: true }));
  session.dispose();
  return took;
}

/** One line of so many megabytes, in which letters, digits, marks and scripts take turns. */
const line = (size) => 'a1-é汉B2_ю9'.repeat((size * 1e6) / 14);

/** Milliseconds to read and count a message with one line of so many megabytes. */
function oneLine(size) {
  const body = new TextEncoder().encode(
    JSON.stringify({ messages: [{ role: 'user', content: line(size) }] }),
  );
  return median([1, 2, 3].map(() => fresh({}, (session) => session.planBody(body, { path }))));
}

const tokens = estimate(messages(2_000)).tokens;
await warmTurn(2_000); // lets the compiler of the runtime finish
const small = await warmTurn(2_000);
const large = await warmTurn(20_000);
const list = messages(2_000);
const text = JSON.stringify(list);
const body = new TextEncoder().encode(JSON.stringify({ model: 'gpt-5', messages: list }));
const wide = { window: 4_000_000 };
const narrow = { window: 200_000 };
const cold = [
  ['JSON.stringify of each message', () => time(() => list.map((one) => JSON.stringify(one)))],
  ['first ingest from objects', () => fresh(wide, (session) => session.sync(list))],
  ['a body that needs no change', () => fresh(wide, (session) => session.planBody(body, { path }))],
  [
    'a body, with a burst',
    () =>
      fresh(narrow, (session) => {
        session.planBody(body, { path });
        session.renderBody();
      }),
  ],
].map(([what, action]) => [what, ...beside(text, action)]);
/** Megabytes of a body for which so many milliseconds are enough, warm. */
const within = (limit, what) => {
  const [, took] = cold.find(([name]) => name === what);
  return ((body.length / 1e6) * (limit / took)).toFixed(1);
};
const folded = messages(20_000);
const megabytes = Buffer.byteLength(JSON.stringify(folded)) / 1e6;
const wasm = readFileSync(new URL('../pkg/wasm/tidemark_bg.wasm', import.meta.url));

const lines = [oneLine(5), oneLine(50)];

const rows = [
  ['transcript', `2,000 messages, ${tokens} tokens, ${text.length} characters of JSON`],
  ['one more message: ingest, plan, render', `${small.toFixed(3)} ms`],
  ['the same at 20,000 messages', `${large.toFixed(3)} ms, ${(large / small).toFixed(2)}×`],
  ...cold.map(([what, took, parse]) => [
    what,
    `${took.toFixed(1)} ms, ${(took / parse).toFixed(1)}× JSON.parse of the transcript`,
  ]),
  [
    'a body in 10 ms, warm',
    `${within(10, 'a body that needs no change')} MB, ${within(10, 'a body, with a burst')} MB with a burst`,
  ],
  ['local summarizer', `${(megabytes / (localSummary(folded) / 1000)).toFixed(1)} MB/s`],
  [
    'a line of 50 MB, classes in turn',
    `${lines[1].toFixed(0)} ms, ${(lines[1] / lines[0]).toFixed(1)}× one of 5 MB`,
  ],
  ['wasm', `${wasm.length} bytes, ${gzipSync(wasm, { level: 9 }).length} gzipped`],
];
for (const [what, result] of rows) console.log(`${what.padEnd(40)} ${result}`);
