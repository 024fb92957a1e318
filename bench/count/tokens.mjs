// Tokenizes the corpus: the length of every token into target/count/tokens.tsv, for the fit, and
// how many there are into tests/corpus/truth.tsv, for tests and reports; and how many each piece of
// the longer texts has, into pieces.tsv, for tests of calibration. `npm --prefix js run fit` calls it.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tokenizers } from './tokenizers.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const corpus = join(root, 'tests/corpus');
const families = Object.keys(tokenizers);
const tokens = [];
const truth = [['text', ...families].join('\t')];
const pieces = [['text', 'end', ...families].join('\t')];
for (const split of ['train', 'test']) {
  for (const file of readdirSync(join(corpus, split)).sort()) {
    const text = readFileSync(join(corpus, split, file), 'utf8');
    const row = [`${split}/${file}`];
    for (const family of families) {
      const lengths = tokenizers[family](text);
      const sum = lengths.reduce((a, b) => a + b, 0);
      if (sum !== Buffer.byteLength(text)) throw new Error(`${family} changes ${split}/${file}`);
      tokens.push([row[0], family, lengths.join(' ')].join('\t'));
      row.push(lengths.length);
    }
    truth.push(row.join('\t'));
    if (/^(english|json|code|logs|cyrillic)\./.test(file) && text.length > 3500) {
      for (const [piece, end] of cut(text, 6)) {
        const counts = families.map((family) => tokenizers[family](piece).length);
        pieces.push([row[0], end, ...counts].join('\t'));
      }
    }
  }
}
mkdirSync(join(root, 'target/count'), { recursive: true });
writeFileSync(join(root, 'target/count/tokens.tsv'), `${tokens.join('\n')}\n`);
writeFileSync(join(corpus, 'truth.tsv'), `${truth.join('\n')}\n`);
writeFileSync(join(corpus, 'pieces.tsv'), `${pieces.join('\n')}\n`);

/** Pieces of about the same size, in whole lines where there are some, each with its end in bytes. */
function* cut(text, number) {
  let from = 0;
  for (let piece = 1; piece <= number; piece++) {
    const least = Math.round((text.length * piece) / number);
    const line = text.indexOf('\n', least - 1) + 1;
    const near = line > 0 && line < least + 200 ? line : least;
    const to = piece === number || near > text.length ? text.length : near;
    if (to > from) yield [text.slice(from, to), Buffer.byteLength(text.slice(0, to))];
    from = to;
  }
}
