// What every store promises. Runs unchanged in Node, Deno, Bun, workerd and Chromium, so it knows
// no test runner: it gives back what it found broken.
import { CheckpointStore } from 'tidemark/stores/checkpoints';

const hash = (digits) => digits.padStart(64, '0');

const texts = [
  'plain',
  '',
  '\uFEFFbyte order mark\r\nline\n\ttab',
  'nul \u0000 and \u001f',
  'é 漢字 👩‍👩‍👧 \uFFFD',
  'base64:QUJD',
  't:marked',
  '{"a":1}',
  '12345678901234567890',
  'null',
  'large: '.concat('ab漢👩'.repeat(120_000)),
];

async function all(keys) {
  const found = [];
  for await (const key of keys) found.push(key);
  return found.sort();
}

/**
 * @param store an empty one
 * @returns what is broken, and how many things were looked at
 */
export async function contract(store) {
  const broken = [];
  let checks = 0;
  const same = (what, found, wanted) => {
    checks++;
    const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
    if (a !== b) broken.push(`${what}: ${String(a).slice(0, 200)}, not ${String(b).slice(0, 200)}`);
  };

  const keys = texts.map((_, at) => `tenant-a/${hash(at.toString(16))}`);
  same('get of nothing', (await store.get(keys[0])) ?? 'nothing', 'nothing');
  for (const [at, text] of texts.entries()) {
    await store.put(keys[at], text);
    const found = await store.get(keys[at]);
    same(`text ${at}`, found === text ? 'exact' : found, 'exact');
  }
  for (const [at, text] of texts.entries()) {
    same(`text ${at}, later`, (await store.get(keys[at])) === text, true);
  }

  const other = keys[0].replace('tenant-a', 'tenant-b');
  same('the same hash of another tenant', (await store.get(other)) ?? 'nothing', 'nothing');
  await store.put(other, 'of b');
  same('tenant a', await store.get(keys[0]), texts[0]);
  await store.put(keys[10], 'short');
  same('put over something larger', await store.get(keys[10]), 'short');

  if (store.has) {
    same('has', await store.has(keys[3]), true);
    same('has not', await store.has(`tenant-a/${hash('ff')}`), false);
  }
  if (store.list) {
    same('list', await all(store.list('tenant-a/')), [...keys].sort());
    same('list of another tenant', await all(store.list('tenant-b/')), [other]);
    same('list of nobody', await all(store.list('tenant-c/')), []);
  }
  if (store.delete) {
    await store.delete(keys[3]);
    await store.delete(keys[3]);
    same('get after delete', (await store.get(keys[3])) ?? 'nothing', 'nothing');
    same('its neighbour', await store.get(keys[4]), texts[4]);
    if (store.has) same('has after delete', await store.has(keys[3]), false);
  }

  if (store.swap) {
    const key = `tenant-s/${hash('1')}`;
    same('swap of what is not there', await store.swap(key, 'b', 'a'), false);
    same('swap of nothing', await store.swap(key, 'a', undefined), true);
    same('swap of nothing, again', await store.swap(key, 'b', undefined), false);
    same('swap of something else', await store.swap(key, 'b', 'x'), false);
    same('what is there', await store.get(key), 'a');
    same('swap', await store.swap(key, 'b', 'a'), true);
    const race = Array.from({ length: 8 }, (_, at) => store.swap(key, `won by ${at}`, 'b'));
    const won = (await Promise.all(race)).flatMap((done, at) => (done ? [at] : []));
    same('one wins', won.length, 1);
    same('its content stands', await store.get(key), `won by ${won[0]}`);
  }

  const checkpoints = new CheckpointStore(store, { namespace: 'tenant-k' });
  same('no checkpoint', (await checkpoints.load('chat 1')) ?? 'none', 'none');
  const first = await checkpoints.save('chat 1', '{"v":1}', undefined);
  same('saved', await checkpoints.load('chat 1'), { checkpoint: '{"v":1}', revision: 1 });
  same('another conversation', (await checkpoints.load('chat 2')) ?? 'none', 'none');
  const attempts = ['a', 'b', 'c'].map((name) => checkpoints.save('chat 1', name, first));
  const results = store.swap
    ? await Promise.allSettled(attempts)
    : [await attempts[0].then((value) => ({ value })), ...(await Promise.allSettled(attempts))];
  if (store.swap) {
    const saved = results.filter(({ status }) => status === 'fulfilled');
    const codes = results.flatMap(({ reason }) => reason?.code ?? []);
    same('one worker saves', saved.length, 1);
    same('the others hear of it', codes, ['conflict', 'conflict']);
    same('its checkpoint', await checkpoints.load('chat 1'), saved[0].value);
  }
  const late = await checkpoints.save('chat 1', 'late', first).catch((error) => error.code);
  same('a save over an old revision', late, 'conflict');
  return { broken, checks };
}
