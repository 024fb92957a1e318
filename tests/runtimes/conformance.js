// What every runtime must do alike: views and checkpoints of real transcripts to the byte, the
// callbacks, recall, resuming, errors. Runs unchanged in Node, Deno, Bun, workerd, edge and browser.
import { Compactor, estimate, Session, TidemarkError } from 'tidemark';
import { MemoryStore } from 'tidemark/stores/memory';
import { digest, vectorOf } from './golden.js';

/**
 * @param {{ vectors: object[], transcripts: Record<string, object[]> }} cases the golden vectors
 *   and the transcripts that they name
 * @returns the vectors as they come out here, and what a host with callbacks sees
 */
export async function conformance({ vectors, transcripts }) {
  const golden = [];
  for (const vector of vectors) {
    const open = (options) => new Session(options);
    golden.push(await vectorOf(open, vector, transcripts[vector.file]));
  }
  return { golden, host: await host(transcripts['mid.json']) };
}

/** A conversation whose host has a store and a summarizer, resumed halfway. */
async function host(transcript) {
  const asked = [];
  const options = {
    window: 16_000,
    secret: '000102030405060708090a0b0c0d0e0f',
    store: new MemoryStore(),
    summarizer: async (request) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      asked.push(await digest(request.prompt));
      return null;
    },
  };
  const half = Math.floor(transcript.length / 2);
  const first = new Compactor(options);
  await first.compact(transcript.slice(0, half));
  const resumed = Compactor.restore(first.checkpoint(), options);
  first.dispose();
  const { messages, decisions, fits } = await resumed.compact(transcript);
  const refs = decisions.flatMap(({ ref }) => ref ?? []);
  const recalled = await resumed.recall({ ref: refs[0] });
  const searched = await resumed.recall({ pattern: 'error' });
  let refused;
  try {
    new Compactor({ window: 'large' });
  } catch (error) {
    refused = TidemarkError.isInstance(error) && [error.code, error.path];
  }
  return {
    asked,
    fits,
    decisions: decisions.length,
    kept: options.store.size,
    view: await digest(JSON.stringify(messages)),
    checkpoint: await digest(resumed.checkpoint()),
    recalled: await digest(recalled),
    searched: await digest(searched),
    estimate: estimate(transcript).tokens,
    refused,
  };
}
