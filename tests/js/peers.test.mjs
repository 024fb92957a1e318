// The README shows what the benchmark measured.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { readmeTable, summaryTable } from '../../bench/peers/table.mjs';

const text = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test("the README's tables of peers are those that results.json prints", () => {
  const readme = text('README.md');
  const { results } = JSON.parse(text('bench/peers/results.json'));
  // bench:peers -- --print prints both, to be pasted.
  for (const table of [readmeTable(results), summaryTable(results)]) {
    assert.ok(readme.includes(`\n\n${table}\n\n`), `not in README.md:\n${table}`);
  }
});
