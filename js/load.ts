import { TidemarkError } from './errors.js';
import base64 from './wasm/inline.js';
import { initSync } from './wasm/tidemark.js';

let started = false;

/**
 * Starts the engine from a WebAssembly.Module or its bytes. Only needed where WebAssembly may not
 * be compiled at run time and the host hands over a module, such as `tidemark/wasm` on an edge
 * runtime; everywhere else the first use starts it.
 * @throws {TidemarkError} `no_wasm`
 */
export function init(module: object): void {
  if (started) return;
  try {
    // Typed loosely for hosts whose types know no WebAssembly.
    initSync({ module: module as WebAssembly.Module | BufferSource });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TidemarkError(
      'no_wasm',
      `WebAssembly cannot be started here: ${why}. ${REMEDY}`,
      undefined,
      { cause },
    );
  }
  started = true;
}

/** @internal Starts the engine on first use, synchronously, from the bytes in the package. */
export function start(): void {
  if (!started) init(decode(base64));
}

const REMEDY =
  "On a page with a Content-Security-Policy allow it with script-src 'wasm-unsafe-eval'; on an edge runtime import tidemark/wasm as a module and pass it to init().";

interface FromBase64 {
  fromBase64?(text: string): Uint8Array<ArrayBuffer>;
}

interface WithBuffer {
  Buffer?: { from(text: string, encoding: 'base64'): Uint8Array<ArrayBuffer> };
}

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
