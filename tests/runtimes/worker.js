// A conversation whose engine is in a Web Worker, beside one without: what comes out is the same.
// Runs in Chromium, Deno and Bun.
import { Compactor, estimate, InternalError } from 'tidemark';
import { MemoryStore } from 'tidemark/stores/memory';
import { WorkerCompactor } from 'tidemark/worker';

const secret = '000102030405060708090a0b0c0d0e0f';
const json = JSON.stringify;

/**
 * @param open starts a worker whose script imports tidemark/worker/engine
 * @param openBroken starts one whose script throws
 * @param transcript OpenAI chat messages
 * @returns what is not as it should be, and how many things were looked at
 */
export async function offloaded(open, openBroken, transcript) {
  const wrong = [];
  let checks = 0;
  const same = (what, found, wanted) => {
    checks++;
    const [a, b] = [json(found), json(wanted)];
    if (a !== b) wrong.push(`${what}: ${String(a).slice(0, 300)}, not ${String(b).slice(0, 300)}`);
  };
  const refused = async (promise) => {
    const error = await promise.then(
      () => ({}),
      (thrown) => thrown,
    );
    return [error.name, error.code, error.path ?? null];
  };
  const worker = open();

  const host = () => {
    const seen = [];
    const store = new MemoryStore();
    const options = {
      store,
      summarizer: async ({ prompt }, { signal }) => {
        seen.push([prompt, signal instanceof AbortSignal]);
        return null;
      },
      beforeBurst: (burst, { signal }) => {
        seen.push([burst, signal instanceof AbortSignal]);
        return { pins: [6] };
      },
      flush: (span, { signal }) => void seen.push([span, signal instanceof AbortSignal]),
      onEvent: (event) => seen.push(event),
      window: 16_000,
      secret,
      pin: (message, index) => index === 3 || message.content === 'never',
    };
    return { seen, store, options };
  };
  const tools = [{ type: 'function', function: { name: 'read', parameters: {} } }];
  const [here, there] = [host(), host()];
  const local = new Compactor(here.options);
  const remote = await WorkerCompactor.open(worker, there.options);
  const own = new Set(transcript);
  let before = [];
  for (let end = 1; end <= transcript.length; end += 16) {
    const messages = transcript.slice(0, end);
    const signal = new AbortController().signal;
    const wanted = await local.compact(messages, { tools, signal });
    const found = await remote.compact(messages, { tools, signal });
    same(`turn ${end}`, found, wanted);
    const mine = (view) => view.map((message) => own.has(message));
    same(`turn ${end}, own objects`, mine(found.messages), mine(wanted.messages));
    if (!found.compacted) {
      const kept = before.slice(0, -1).filter((message, at) => message !== found.messages[at]);
      same(`turn ${end}, same objects`, kept.length, 0);
    }
    before = found.messages;
  }
  same('events, prompts and signals', there.seen, here.seen);
  same('something was asked', here.seen.length > 4 && there.store.size > 0, true);
  same('kept', there.store.size, here.store.size);
  same('checkpoint', await remote.checkpoint(), local.checkpoint());
  same('estimate', await remote.estimate(), local.estimate());
  same('stats', await remote.stats(), local.stats());
  same('summaries', await remote.summaries(), local.summaries());
  same('explanation', await remote.explain(2), local.explain(2));
  same('no explanation', await refused(remote.explain(-1)), [
    'TidemarkError',
    'invalid_option',
    'index',
  ]);
  same('tool', await remote.recallTool(), local.recallTool());
  same('schema', await remote.recallSchema(), local.recallSchema());
  const { decisions } = await local.compact(transcript, { dryRun: true, force: true });
  same(
    'dry run',
    (await remote.compact(transcript, { dryRun: true, force: true })).decisions,
    decisions,
  );
  same(
    'search',
    await remote.recall({ pattern: 'error' }),
    await local.recall({ pattern: 'error' }),
  );
  const ref = json(before).match(/[0-9a-f]{12}/)?.[0] ?? '';
  same('page', await remote.recall(json({ ref })), await local.recall(json({ ref })));

  const changed = transcript.slice();
  changed[4] = { ...changed[4], content: 'rewritten' };
  const [a, b] = [await local.compact(changed), await remote.compact(changed)];
  same('a rewritten message', b, a);
  changed.at(-1).content += ' and more';
  same('a longer last message', (await remote.compact(changed)).messages.at(-1), changed.at(-1));

  const body = new TextEncoder().encode(json({ model: 'm', messages: transcript }));
  const resumedHere = Compactor.restore(local.checkpoint(), host().options);
  const resumed = await WorkerCompactor.restore(worker, local.checkpoint(), host().options);
  const text = ({ body }) => new TextDecoder().decode(body);
  const sent = await resumed.compactBody(body);
  same('body', text(sent), text(await resumedHere.compactBody(body)));
  const small = new TextEncoder().encode('{"messages":[{"role":"user","content":"hi"}]}');
  const fresh = await WorkerCompactor.open(worker, { window: 8000 });
  const framed = new Uint8Array([...small, ...small]).subarray(small.length);
  same('a body that fits', (await fresh.compactBody(framed)).body === framed, true);
  resumed.dispose();

  const url = { role: 'user', content: [{ type: 'text', text: 'x' }], extra: new URL('http://a/') };
  const [shown] = (await fresh.compact([url])).messages;
  same('what cannot be cloned', shown === url, true);

  same('option', await refused(WorkerCompactor.open(worker, { window: 'large' })), [
    'TidemarkError',
    'invalid_option',
    'options.window',
  ]);
  same('tokenizer', await refused(WorkerCompactor.open(worker, { tokenizer: () => 1 })), [
    'TidemarkError',
    'invalid_option',
    'options.tokenizer',
  ]);
  same(
    'checkpoint',
    (await refused(WorkerCompactor.restore(worker, 'x')))[1],
    'invalid_checkpoint',
  );
  same('transcript', await refused(fresh.compact([url, 7])), [
    'TidemarkError',
    'invalid_transcript',
    'messages[1]',
  ]);
  same('after that', (await fresh.compact([url])).fits, true);
  same('recall', (await refused(fresh.recall('{}')))[1], 'invalid_recall');

  const slow = await WorkerCompactor.open(worker, {
    window: 4000,
    summarizer: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  const summary = { build: () => '' };
  same('protocol', await refused(WorkerCompactor.open(worker, { summary })), [
    'TidemarkError',
    'invalid_option',
    'options.summary.build',
  ]);
  let late;
  const hasty = await WorkerCompactor.open(worker, {
    window: 4000,
    summarizerTimeout: 5,
    summarizer: (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          late = signal.reason.message;
          reject(signal.reason);
        });
      }),
  });
  same('a slow summarizer', (await hasty.compact(transcript)).failures[0]?.effect, 'summarize');
  same('is told', late, 'no answer within 5 ms');
  const controller = new AbortController();
  slow.on(
    'effect:start',
    ({ effect }) => effect.kind === 'summarize' && controller.abort('enough'),
  );
  const { signal } = controller;
  const reason = await slow.compact(transcript, { signal }).catch((error) => error);
  same('an aborted call', reason, 'enough');
  slow.dispose();
  same('disposed', (await refused(slow.estimate()))[1], 'disposed');
  same('others go on', (await fresh.estimate()).messages, 1);
  const waiting = refused(fresh.compact(transcript));
  fresh[Symbol.dispose]();
  same('disposed while it ran', (await waiting)[1], 'disposed');

  const broken = openBroken();
  const failed = await WorkerCompactor.open(broken).catch((error) => error);
  same('a worker that fails', [failed instanceof InternalError, failed.code], [true, 'internal']);
  broken.terminate();
  worker.terminate();
  same('the package itself works here', estimate(transcript).tokens > 0, true);
  return { wrong, checks };
}
