// Replays a real agent session through a small context window, then recalls and resumes.
//
//   npm --prefix js run demo -- [transcript.json] [--window TOKENS]
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, styleText } from 'node:util';
import { Compactor, estimate } from '../pkg/index.js';
import { FileStore } from '../pkg/stores/file.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { window: { type: 'string', default: '16000' } },
});
const file = positionals[0] ?? fileURLToPath(new URL('../tests/data/mid.json', import.meta.url));
const transcript = JSON.parse(readFileSync(file, 'utf8'));
const window = Number(values.window);
const folder = mkdtempSync(join(tmpdir(), 'tidemark-demo-'));
const color = (style, text) => (process.stdout.isTTY ? styleText(style, text) : text);
const number = (value) => value.toLocaleString('en-US').padStart(8);

try {
  const options = { window, store: new FileStore(folder) };
  const compactor = new Compactor(options);
  const { usable, trigger } = compactor.estimate();
  console.log(`${file}`);
  console.log(
    `${transcript.length} messages, about ${estimate(transcript).tokens.toLocaleString('en-US')} tokens; window ${window}, usable ${usable}, bursts start at ${trigger}\n`,
  );
  console.log('messages  whole     view      view of usable           what happened');

  const whole = new Compactor({ window: 100_000_000 });
  let offloaded;
  let sent;
  for (let end = 1; end <= transcript.length; end++) {
    // Each answer of the assistant was one model call on the messages before it.
    const called = end === transcript.length || transcript[end].role === 'assistant';
    if (!called) continue;
    const messages = transcript.slice(0, end);
    const result = await compactor.compact(messages);
    const full = (await whole.compact(messages)).tokensAfter;
    sent = result.messages;
    offloaded ??= result.decisions.find((decision) => decision.kind === 'offloaded');
    if (!result.compacted && end % 25 !== 0 && end !== transcript.length) continue;
    const filled = Math.round((result.tokensAfter / usable) * 20);
    const bar = `${'█'.repeat(Math.min(filled, 20)).padEnd(20, '·')}`;
    const what = result.compacted ? describe(result) : '';
    console.log(
      `${String(end).padStart(8)}${number(full)}${number(result.tokensAfter)}      ${color(result.compacted ? 'green' : 'dim', bar)}  ${what}`,
    );
    if (!result.fits) console.log(color('red', `          ${result.notice}`));
  }

  if (offloaded) await showRecall(compactor, offloaded);
  const resumed = Compactor.restore(compactor.checkpoint(), options);
  const again = await resumed.compact(transcript);
  const same = JSON.stringify(again.messages) === JSON.stringify(sent);
  console.log(
    `\nResumed from a checkpoint of ${compactor.checkpoint().length} characters: the view is ${same ? 'byte-identical' : 'DIFFERENT'}.`,
  );
  if (!same) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** In a line: what a burst took out of the view. */
function describe({ decisions, tokensBefore, tokensAfter }) {
  const count = (kind) => decisions.filter((decision) => decision.kind === kind).length;
  const parts = ['offloaded', 'cleared', 'elided']
    .filter((kind) => count(kind) > 0)
    .map((kind) => `${count(kind)} ${kind}`);
  for (const { kind, index, to } of decisions) {
    if (kind === 'covered') parts.push(`messages ${index}–${to - 1} summarized`);
    if (kind === 'dropped') parts.push(`messages ${index}–${to - 1} dropped`);
  }
  return `${tokensBefore} → ${tokensAfter}: ${parts.join(', ')}`;
}

/** Pages through one offloaded result and holds it against the transcript. */
async function showRecall(compactor, { ref, index }) {
  let offset = 0;
  let pages = 0;
  let recalled = '';
  while (offset !== undefined) {
    const page = await compactor.recall({ ref, offset });
    const end = page.indexOf('\n');
    recalled += page.slice(end + 1);
    pages++;
    const next = /go on with offset (\d+)\]/.exec(page.slice(0, end));
    offset = next ? Number(next[1]) : undefined;
  }
  const intact = recalled === transcript[index].content;
  console.log(
    `\nrecall({ ref: '${ref}' }) brought the result of message ${index} back: ${recalled.length} characters on ${pages} page${pages > 1 ? 's' : ''}, ${intact ? 'intact' : 'DAMAGED'}.`,
  );
  if (!intact) process.exitCode = 1;
}
