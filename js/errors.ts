/**
 * What went wrong.
 * - `invalid_option`, `invalid_json`, `invalid_transcript`, `invalid_recall`: the call's input;
 *   `invalid_transcript` at `messages` also where `recall` comes before the transcript did
 * - `invalid_checkpoint`, `unsupported_checkpoint`: the checkpoint
 * - `unknown_effect`, `invalid_reply`: the call of `resolve`
 * - `invalid_decision`: a stage of your own wants what must not be
 * - `disposed`: the session was disposed of
 * - `conflict`: another worker saved the conversation's checkpoint meanwhile; load it and go on
 * - `corrupt`: what a store holds is not what was put there
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
  | 'invalid_decision'
  | 'disposed'
  | 'conflict'
  | 'corrupt'
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

/**
 * A fault of tidemark, with code `internal`. The session that threw it refuses every further call;
 * restore it from its last checkpoint.
 */
export class InternalError extends TidemarkError {
  constructor(message: string, options?: ErrorOptions) {
    super('internal', message, undefined, options);
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
  return new InternalError(text, { cause: thrown });
}

/** @internal Refuses options that are no object. */
export function requireObject(value: unknown, place: string, example: string): void {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  throw new TidemarkError(
    'invalid_option',
    `${place}: expected an object, such as ${example}`,
    place,
  );
}

/** @internal Lets the engine's error of an unknown option also name one that the engine never sees. */
export function alsoKnown(error: unknown, name: string): unknown {
  if (!TidemarkError.isInstance(error) || error.code !== 'invalid_option') return error;
  const top = /^options\.[^.[]*: unknown; known are /.test(error.message);
  return top ? new TidemarkError(error.code, `${error.message}, ${name}`, error.path) : error;
}
