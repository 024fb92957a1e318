import { TidemarkError } from './errors.js';
import { initSync } from './wasm/tidemark.js';

let started = false;
let source: (() => object) | undefined;

/**
 * Starts the engine from a WebAssembly.Module or its bytes. Needed with `tidemark/slim`, which
 * holds no WebAssembly; everywhere else the first use starts the engine.
 * @throws {TidemarkError} `no_wasm`
 */
export function init(module: object): void {
  if (started) return;
  try {
    // Typed loosely for hosts whose types know no WebAssembly.
    initSync({ module: module as WebAssembly.Module | BufferSource });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw noWasm(`WebAssembly cannot be started here: ${why}. ${REMEDY}`, cause);
  }
  started = true;
}

/** @internal Names what `start` takes the module, or its bytes, from; the first one stands. */
export function provide(given: () => object): void {
  source ??= given;
}

/** @internal Starts the engine on first use, synchronously. */
export function start(): void {
  if (started) return;
  if (!source)
    throw noWasm('tidemark/slim holds no WebAssembly: pass tidemark/wasm to init() first');
  init(source());
}

function noWasm(message: string, cause?: unknown): TidemarkError {
  return new TidemarkError('no_wasm', message, undefined, { cause });
}

const REMEDY =
  "On a page with a Content-Security-Policy allow it with script-src 'wasm-unsafe-eval'; on an edge runtime import tidemark/wasm as a module and pass it to init().";
