// What the counter estimates, against real tokenizers and other estimators, and how fast it is.
//
//   npm --prefix js run report                    the texts of tests/corpus/test, speed, bytes of wasm
//   npm --prefix js run report -- DIR [FAMILY..]  also every file under DIR, by its worst error
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { estimateTokenCount } from 'tokenx';
import { bin, root, run, wasmEnv } from '../../js/build.mjs';
import { tokenizers } from './tokenizers.mjs';

const families = Object.keys(tokenizers);
const corpus = join(root, 'tests/corpus');

// ---- the counter --------------------------------------------------------------

/** Compiles the counter alone, as the package is compiled; gives the bytes of the module. */
async function compile(name, features) {
  const env = { ...(await wasmEnv()), CARGO_TARGET_DIR: join(root, 'target/count') };
  const manifest = join(root, 'bench/count/Cargo.toml');
  const target = ['--lib', '--release', '--target', 'wasm32-unknown-unknown'];
  await run('cargo', ['build', '--quiet', '--manifest-path', manifest, ...target, ...features], {
    env,
  });
  const built = join(root, 'target/count/wasm32-unknown-unknown/release/tidemark_count.wasm');
  const out = join(root, `target/count/${name}.wasm`);
  await run(bin('wasm-opt'), ['-Oz', '--all-features', built, '-o', out]);
  return readFileSync(out);
}

const wasm = await compile('with', ['--features', 'count']);
const without = await compile('without', []);
const { instance } = await WebAssembly.instantiate(wasm);
const { memory, room, tokens } = instance.exports;

/** A text in the memory of the module. */
function place(text) {
  const bytes = Buffer.from(text);
  const at = room(bytes.length);
  new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
  return { at, size: bytes.length };
}

const count = ({ at, size }, family) => tokens(at, size, families.indexOf(family), 0);
// One text after another in the same room.
let shared = { at: 0, size: 0 };
function estimate(text, family) {
  const bytes = Buffer.from(text);
  if (bytes.length > shared.size) shared = { at: room(bytes.length * 2), size: bytes.length * 2 };
  new Uint8Array(memory.buffer, shared.at, bytes.length).set(bytes);
  return count({ at: shared.at, size: bytes.length }, family);
}

const others = {
  tokenx: (text) => estimateTokenCount(text),
  'bytes/4': (text) => Math.ceil(Buffer.byteLength(text) / 4),
  'chars/4': (text) => Math.ceil(text.length / 4),
  // lovia's rule for an entry: whole bytes/4, and 8.
  lovia: (text) => Math.floor(Buffer.byteLength(text) / 4) + 8,
};

// ---- accuracy -----------------------------------------------------------------

const percent = (ratio) => `${ratio >= 0 ? '+' : ''}${(ratio * 100).toFixed(1)}`;

function print(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows) {
    console.log(
      row.map((cell, at) => (at ? cell.padStart : cell.padEnd).call(cell, widths[at])).join('  '),
    );
  }
  console.log();
}

const [, ...lines] = readFileSync(join(corpus, 'truth.tsv'), 'utf8').trim().split('\n');
const held = lines
  .map((line) => line.split('\t'))
  .filter(([name]) => name.startsWith('test/'))
  .map(([name, ...counts]) => ({
    name,
    class: name.slice('test/'.length).split('.')[0],
    text: readFileSync(join(corpus, name), 'utf8'),
    real: Object.fromEntries(families.map((family, at) => [family, Number(counts[at])])),
  }));

const classes = [...new Set(held.map((text) => text.class))].sort();
for (const family of families) {
  const methods = { tidemark: (text) => estimate(text, family), ...others };
  console.log(`Errors in percent, ${family}, texts that were not fitted:\n`);
  const rows = [['class', 'texts', 'tokens', 'tidemark', 'worst text', ...Object.keys(others)]];
  const all = Object.fromEntries(Object.keys(methods).map((name) => [name, []]));
  for (const kind of classes) {
    const texts = held.filter((text) => text.class === kind);
    const real = texts.reduce((sum, text) => sum + text.real[family], 0);
    const cells = [];
    for (const [name, method] of Object.entries(methods)) {
      const estimates = texts.map((text) => method(text.text));
      const errors = texts.map((text, at) => estimates[at] / text.real[family] - 1);
      all[name].push(...errors);
      cells.push(percent(estimates.reduce((a, b) => a + b, 0) / real - 1));
      if (name === 'tidemark') {
        cells.push(percent(errors.reduce((a, b) => (Math.abs(a) > Math.abs(b) ? a : b))));
      }
    }
    rows.push([kind, `${texts.length}`, `${real}`, ...cells]);
  }
  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
  const over = (name, what) => percent(mean(all[name].map(what)));
  for (const [label, what] of [
    ['mean', (error) => error],
    ['mean size', Math.abs],
  ]) {
    const cells = Object.keys(others).map((name) => over(name, what));
    rows.push([label, `${held.length}`, '', over('tidemark', what), '', ...cells]);
  }
  print(rows);
}

// ---- speed --------------------------------------------------------------------

/** Milliseconds of the fastest of some runs. */
function best(action, runs) {
  action();
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++) {
    const start = performance.now();
    action();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

console.log('Speed in MB/s (one text of 300 KB for each class, the fastest of several runs):\n');
const speeds = [['class', 'tidemark', 'escaped', 'gpt-tokenizer', 'tokenx', 'times', 'times']];
for (const kind of classes) {
  const once = held
    .filter((text) => text.class === kind)
    .map((text) => text.text)
    .join('\n');
  const text = once.repeat(Math.ceil(300_000 / once.length));
  const plain = place(text);
  const inside = place(JSON.stringify(text).slice(1, -1));
  const times = [
    best(() => count(plain, 'o200k'), 10),
    best(() => tokens(inside.at, inside.size, 0, 1), 10),
    best(() => countTokens(text), 2),
    best(() => estimateTokenCount(text), 3),
  ];
  const cells = times.map((time) => (plain.size / 1000 / time).toFixed(1));
  const gains = [times[2], times[3]].map((time) => (time / times[0]).toFixed(0));
  speeds.push([kind, ...cells, ...gains]);
}
print(speeds);
console.log(`wasm: ${wasm.length - without.length} bytes for the counter\n`);

// ---- other files --------------------------------------------------------------

/** Tokens of a long text, tokenized in pieces that end at line breaks, since tokenizers slow down. */
function real(text, family) {
  let sum = 0;
  for (let at = 0; at < text.length; ) {
    let end = Math.min(text.length, at + 20_000);
    const line = text.lastIndexOf('\n', end);
    if (end < text.length && line > at) end = line;
    else if (/[\ud800-\udbff]/.test(text[end - 1])) end += 1;
    sum += tokenizers[family](text.slice(at, end)).length;
    at = end;
  }
  return sum;
}

/** The text of a file; of chat messages also what they say, which is what the engine counts. */
function* texts(file) {
  const text = readFileSync(file, 'utf8');
  yield [file, text];
  if (!file.endsWith('.json')) return;
  const said = [];
  const visit = (value) => {
    if (typeof value === 'string') said.push(value);
    else if (value !== null && typeof value === 'object') Object.values(value).forEach(visit);
  };
  try {
    visit(JSON.parse(text));
  } catch {
    return; // several values in one file
  }
  yield [`${file} (its strings)`, said.join('\n')];
}

const [folder, ...chosen] = process.argv.slice(2);
if (folder !== undefined) {
  if (!existsSync(folder)) throw new Error(`no such folder: ${folder}`);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .sort();
  for (const family of chosen.length > 0 ? chosen : families) {
    const errors = [];
    for (const file of files) {
      for (const [name, raw] of texts(file)) {
        const text = raw.toWellFormed?.() ?? raw;
        if (text.length < 1000) continue;
        errors.push({ name, error: estimate(text, family) / real(text, family) - 1 });
      }
    }
    errors.sort((a, b) => a.error - b.error);
    console.log(`${family}: ${errors.length} texts under ${folder}, lowest and highest:\n`);
    print(
      [...errors.slice(0, 8), ...errors.slice(-5)].map(({ name, error }) => [
        name.slice(folder.length),
        percent(error),
      ]),
    );
  }
}
