// The engine from the bytes in the package: Node, Deno, Bun, browsers and bundlers.
import { provide } from '../load.js';
import base64 from '../wasm/inline.js';

interface FromBase64 {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

interface WithBuffer {
  Buffer?: { from(text: string, encoding: 'base64'): Uint8Array<ArrayBuffer> };
}

provide(() => decode(base64));

/** The fastest way that the runtime has; `Uint8Array.from(atob(…))` would take ten times the loop. */
function decode(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as FromBase64).fromBase64?.(text);
  const bytes = native ?? (globalThis as WithBuffer).Buffer?.from(text, 'base64');
  if (bytes) return bytes;
  const binary = atob(text);
  const decoded = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) decoded[at] = binary.charCodeAt(at);
  return decoded;
}
