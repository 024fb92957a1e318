// The demonstration in README.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

test('the demo shrinks a real session, recalls a result intact and resumes with the same bytes', () => {
  const output = execFileSync(process.execPath, [path('../../js/demo.mjs')], { encoding: 'utf8' });
  assert.match(output, /^257 messages of about /m);
  assert.match(output, /^ +turn +messages +tokens +view /m);
  assert.ok(output.match(/ → /g).length >= 3, 'bursts');
  assert.match(output, /: it is intact\.$/m);
  assert.match(output, /: the view is byte-identical\.$/m);
  assert.ok(!output.includes('\u001b'), 'colours in a pipe');
});

test('the demo takes a file and a window', () => {
  const options = [path('../../js/demo.mjs'), path('../data/small.json'), '--window', '8000'];
  const output = execFileSync(process.execPath, options, { encoding: 'utf8' });
  assert.match(output, /^34 messages .* through a window of 8,000:$/m);
});
