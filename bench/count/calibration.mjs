// How far the estimate of each request of the recorded sessions is off, once usage of the requests
// before was reported: by tokenizer, and by whether the engine counts for that one or for o200k.
// `npm --prefix js run report` calls it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { root } from '../../js/build.mjs';
import { Compactor } from '../../pkg/index.js';
import { replay } from '../../pkg/replay/index.js';
import { tokenizers } from './tokenizers.mjs';

const recorded = join(root, 'bench/peers/sessions');
const files = [
  ...readdirSync(recorded).map((name) => join(recorded, name)),
  ...['large', 'mid', 'small'].map((name) => join(root, `tests/data/${name}.json`)),
].filter((file) => /\.json(\.gz)?$/.test(file));
const sessions = files.map((file) => {
  const bytes = readFileSync(file);
  return JSON.parse(file.endsWith('.gz') ? gunzipSync(bytes) : bytes);
});

/** Tokens of a text, of which long ones are cut, since tokenizers slow down. */
function counter(encode) {
  const known = new Map();
  return (text) => {
    let sum = known.get(text);
    if (sum === undefined) {
      sum = 0;
      for (let at = 0; at < text.length; at += 20_000) {
        sum += encode(text.slice(at, at + 20_000)).length;
      }
      known.set(text, sum);
    }
    return sum;
  };
}

/** Sizes of the errors from the third request of each session on, smallest first. */
async function errors(family, count, window) {
  const found = [];
  for (const messages of sessions) {
    const compactor = new Compactor({ window, tokenizer: family });
    let estimated = 0;
    const policy = async (transcript, { usage }) => {
      const result = await compactor.compact(transcript, { usage });
      estimated = result.tokensAfter;
      const tool = compactor.recallTool();
      return { messages: result.messages, tools: tool ? [tool] : [] };
    };
    const onCall = ({ call, tokens }) => {
      if (call >= 2) found.push(Math.abs(estimated / tokens - 1));
    };
    await replay(messages, policy, { window, count, onCall });
  }
  return found.sort((a, b) => a - b);
}

console.log('Errors in percent with usage reported, each request of the recorded sessions:\n');
const line = (cells) =>
  console.log(
    cells
      .map((cell) => cell.padEnd(12))
      .join('')
      .trimEnd(),
  );
line(['tokenizer', 'counted as', 'window', 'median', '95 of 100', '99 of 100']);
for (const [name, encode] of Object.entries(tokenizers)) {
  const count = counter(encode);
  for (const family of new Set([name, 'o200k'])) {
    for (const window of [32_768, 10_000_000]) {
      const all = await errors(family, count, window);
      const at = (share) => (all[Math.floor(share * (all.length - 1))] * 100).toFixed(1);
      const sized = window === 32_768 ? '32k' : 'all fits';
      line([name, family, sized, at(0.5), at(0.95), at(0.99)]);
    }
  }
}
console.log();
