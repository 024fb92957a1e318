// The wasm must give the bytes that the native engine gives; see tests/golden.rs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Session } from '../../pkg/index.js';
import { vectorOf } from '../runtimes/golden.js';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));

for (const vector of read('golden.json')) {
  const { window, store } = vector.options;
  const host = store ? ' with a host' : '';
  test(`${vector.file} at ${window}${host}: native Rust and wasm agree to the byte`, async () => {
    const open = (options) => new Session(options);
    assert.deepEqual(await vectorOf(open, vector, read(`data/${vector.file}`)), vector);
  });
}
