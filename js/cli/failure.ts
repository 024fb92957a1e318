// What the command line ends with.

/** Exit codes, as CLI.md lists them. */
export const EXIT = {
  /** All went well. */
  ok: 0,
  /** Done, but the answer is no: problems were found, the view does not fit, nothing is there. */
  negative: 1,
  /** The command line or the settings are wrong. */
  usage: 2,
  /** A file cannot be read or understood. */
  input: 3,
  /** A file cannot be written. */
  output: 4,
  /** A fault of tidemark. */
  fault: 70,
  /** Stopped by Ctrl-C. */
  interrupted: 130,
} as const;

/** An error whose message is for the user, without a stack. */
export class Failure extends Error {
  override name = 'Failure';
  readonly code: number;
  /** What to do about it, where that is known. */
  readonly hint: string | undefined;

  constructor(code: number, message: string, hint?: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** The words of whatever was thrown. */
export function reason(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
