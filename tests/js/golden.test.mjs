// The wasm must give the bytes that the native engine gives; see tests/golden.rs.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { plan, render, Session } from '../../pkg/index.js';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const digest = (text) => createHash('sha256').update(text).digest('hex');

for (const { file, window, secret, view, checkpoint } of read('golden.json')) {
  test(`${file} at ${window}: native Rust and wasm agree to the byte`, () => {
    const transcript = read(`data/${file}`);
    const session = new Session({ window, secret });
    for (const end of [Math.floor(transcript.length / 2), transcript.length]) {
      assert.equal(plan(session, transcript.slice(0, end)).kind, 'done');
    }
    assert.equal(digest(JSON.stringify(render(session))), view);
    assert.equal(digest(session.checkpoint()), checkpoint);
    session.dispose();
  });
}
