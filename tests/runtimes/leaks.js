// Creates sessions and drops them, and watches the memory of the engine. Runs in Node and Chromium.
import { Session } from 'tidemark';

let memory;
const { Instance } = WebAssembly;
WebAssembly.Instance = class extends Instance {
  constructor(...args) {
    super(...args);
    memory = this.exports.memory;
  }
};

const message = (seed) => ({ role: 'user', content: `${seed} `.repeat(2000) });

/**
 * @param pause gives the event loop, and the garbage collector, a turn
 * @param end what is done with each session
 * @returns bytes of the engine's memory after each tenth of 10,000 sessions
 */
export async function churn(pause, end = () => {}) {
  const sizes = [];
  for (let at = 1; at <= 10_000; at++) {
    const session = new Session({ window: 16_000 });
    session.plan([message(at), message(-at)]);
    end(session);
    if (at % 50 === 0) await pause();
    if (at % 1000 === 0) sizes.push(memory.buffer.byteLength);
  }
  return sizes;
}
