// Replays a real agent session through a small context window, then recalls and resumes.
//
//   npm --prefix js run demo -- [transcript.json] [--window TOKENS]
//
// A transcript is a JSON array of OpenAI Chat messages. No model is called: the built-in local
// summarizer writes the summaries.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, styleText } from 'node:util';
import { Compactor, Session } from '../pkg/index.js';
import { FileStore } from '../pkg/stores/file.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { window: { type: 'string', default: '16000' } },
});
const file = positionals[0] ?? fileURLToPath(new URL('../tests/data/mid.json', import.meta.url));
const transcript = JSON.parse(readFileSync(file, 'utf8'));

/** Prints every so many turns, beside those with a burst. */
const EVERY = 25;
const BAR = 20;

const colored = process.stdout.isTTY && !process.env.NO_COLOR && styleText !== undefined;
const color = (style, text) => (colored ? styleText(style, text) : text);
const number = (value) => value.toLocaleString('en-US');
const row = (turn, messages, whole, view, rest) =>
  console.log(
    `${turn.padStart(5)}${messages.padStart(10)}${whole.padStart(10)}${view.padStart(9)}  ${rest}`,
  );

const folder = mkdtempSync(join(tmpdir(), 'tidemark-demo-'));
try {
  const options = { window: Number(values.window), store: new FileStore(folder) };
  const compactor = new Compactor(options);
  // The same messages in a session that never compacts, for comparison.
  const whole = new Session();
  const { window, usable, trigger, target } = compactor.estimate();
  console.log(`${file}`);
  console.log(
    `${transcript.length} messages of about ${number(whole.estimate(transcript).tokens)} tokens, through a window of ${number(window)}:\n` +
      `${number(usable)} are usable, a burst starts at ${number(trigger)} and aims at ${number(target)}.\n`,
  );
  row('turn', 'messages', 'tokens', 'view', `${'of usable'.padEnd(BAR)}  what happened`);

  const started = performance.now();
  let turn = 0;
  let offloaded;
  let sent = [];
  for (let end = 1; end <= transcript.length; end++) {
    // Each answer of the assistant was one model call on the messages before it.
    const last = end === transcript.length;
    if (!last && transcript[end].role !== 'assistant') continue;
    turn++;
    const messages = transcript.slice(0, end);
    const result = await compactor.compact(messages);
    sent = result.messages;
    for (const decision of result.decisions) {
      const larger = decision.tokensSaved > (offloaded?.tokensSaved ?? 0);
      if (decision.kind === 'offloaded' && larger) offloaded = decision;
    }
    if (!result.compacted && result.fits && turn % EVERY !== 0 && !last) continue;

    const filled = Math.min(Math.round((result.tokensAfter / usable) * BAR), BAR);
    const bar = '█'.repeat(filled).padEnd(BAR, '·');
    row(
      number(turn),
      number(end),
      number(whole.estimate(messages).tokens),
      number(result.tokensAfter),
      `${color(result.compacted ? 'green' : 'gray', bar)}  ${result.compacted ? burst(result) : ''}`,
    );
    if (result.notice) console.log(color('red', result.notice));
  }
  const seconds = (performance.now() - started) / 1000;
  console.log(`\n${turn} turns took ${seconds.toFixed(2)} s.`);

  if (offloaded) await showRecall(compactor, offloaded);
  await showResume(compactor, options, sent);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** In a line: what a burst took out of the view. */
function burst({ decisions, tokensBefore, tokensAfter }) {
  const count = (kind) => decisions.filter((decision) => decision.kind === kind).length;
  const parts = ['offloaded', 'cleared', 'elided']
    .filter((kind) => count(kind) > 0)
    .map((kind) => `${count(kind)} ${kind}`);
  for (const { kind, index, to } of decisions) {
    if (kind === 'covered') parts.push(`messages ${index} to ${to - 1} summarized`);
    if (kind === 'dropped') parts.push(`messages ${index} to ${to - 1} dropped`);
  }
  return `${number(tokensBefore)} → ${number(tokensAfter)}: ${parts.join(', ')}`;
}

/** Pages through the largest offloaded result, as a model would, and holds it against the transcript. */
async function showRecall(compactor, { ref, index }) {
  let pages = 0;
  let recalled = '';
  for (let offset = 0; offset !== undefined; pages++) {
    const page = await compactor.recall({ ref, offset });
    const head = page.slice(0, page.indexOf('\n'));
    recalled += page.slice(head.length + 1);
    const next = /go on with offset (\d+)\]$/.exec(head);
    offset = next ? Number(next[1]) : undefined;
  }
  verdict(
    recalled === transcript[index].content,
    `recall({ ref: '${ref}' }) gave the result in message ${index} back, ${number(recalled.length)} characters on ${pages} page${pages === 1 ? '' : 's'}:`,
    'it is intact',
  );
}

/** Resumes from the checkpoint over the same transcript, and compares the views. */
async function showResume(compactor, options, sent) {
  const checkpoint = compactor.checkpoint();
  const resumed = await Compactor.restore(checkpoint, options).compact(transcript);
  verdict(
    JSON.stringify(resumed.messages) === JSON.stringify(sent),
    `Resumed from a checkpoint of ${number(checkpoint.length)} characters:`,
    'the view is byte-identical',
  );
}

function verdict(right, what, words) {
  console.log(
    `${what} ${right ? color('green', words) : color('red', `it is NOT so that ${words}`)}.`,
  );
  if (!right) process.exitCode = 1;
}
