/**
 * What went wrong.
 * - `invalid_option`, `invalid_json`, `invalid_transcript`, `invalid_recall`: the call's input
 * - `invalid_checkpoint`, `unsupported_checkpoint`: the checkpoint
 * - `unknown_effect`, `invalid_reply`: the call of `resolve`
 * - `disposed`: the session was disposed of
 * - `no_wasm`: WebAssembly cannot be started here
 * - `internal`: a fault of tidemark; restore the session from its last checkpoint
 */
export type TidemarkErrorCode =
  | 'invalid_option'
  | 'invalid_json'
  | 'invalid_transcript'
  | 'invalid_recall'
  | 'invalid_checkpoint'
  | 'unsupported_checkpoint'
  | 'unknown_effect'
  | 'invalid_reply'
  | 'disposed'
  | 'no_wasm'
  | 'internal';

const marker = Symbol.for('tidemark.error');

/** An error of tidemark. The call that threw it changed nothing, unless its code is `internal`. */
export class TidemarkError extends Error {
  override readonly name = 'TidemarkError';
  readonly code: TidemarkErrorCode;
  /** The place, such as `options.compactAt` or `messages[3].content`. */
  readonly path: string | undefined;

  constructor(code: TidemarkErrorCode, message: string, path?: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.path = path;
    Object.defineProperty(this, marker, { value: true });
  }

  /** Whether an error is one of tidemark, whichever copy of the package threw it. */
  static isInstance(error: unknown): error is TidemarkError {
    return typeof error === 'object' && error !== null && marker in error;
  }
}

/** @internal Makes a TidemarkError of what the engine threw. */
export function fromEngine(thrown: unknown): TidemarkError {
  const { code, path, message } = Object(thrown) as Partial<TidemarkError>;
  // What the engine refuses carries a code; whatever else comes out of it, a panic first of all, is a fault.
  if (typeof code === 'string') {
    return new TidemarkError(code, message ?? code, path || undefined);
  }
  const text = `the engine failed (${message ?? String(thrown)}): restore from the last checkpoint`;
  return new TidemarkError('internal', text, undefined, { cause: thrown });
}
