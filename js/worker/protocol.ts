import type { CompactorEvent, CompactorOptions } from '../compactor.js';
import type { BeforeBurst, Flush, SummarizeRequest } from '../driver.js';
import { TidemarkError, type TidemarkErrorCode } from '../errors.js';
import type { Outcome, PlanRequest } from '../types.js';

/** What both sides share: one side is a conversation of the page, the other its engine. */
export interface Envelope {
  /** Tells these messages from others that go through the same worker. */
  tidemark: 'worker';
  /** The conversation. */
  at: number;
}

/** Options that can be cloned, and what the page performs. */
export interface Opening {
  options: Omit<CompactorOptions<object>, 'tokenizer'>;
  checkpoint: string | undefined;
  pin: boolean;
  store: boolean;
  summarizer: boolean;
  beforeBurst: boolean;
  flush: boolean;
}

/** What is new since the last call. */
export interface Changes {
  /** Messages that stand, from the start. */
  keep: number;
  fresh: object[];
  /** Indices, in `fresh`, of pinned messages. */
  pinned: number[];
  /** Tools and instructions as JSON; none where they are what they were. */
  tools?: string | undefined;
  system?: string | undefined;
}

/** What goes with a call of `compact` or `compactBody`. */
export interface Asked extends PlanRequest {
  path?: string | undefined;
}

/** Calls of the page. */
export type Call =
  | { call: 'open'; opening: Opening }
  | { call: 'compact'; changes: Changes; request: Asked }
  | { call: 'compactBody'; body: Uint8Array; request: Asked }
  | { call: 'recall'; args: unknown }
  | { call: 'explain'; index: number }
  | { call: 'estimate' | 'stats' | 'recallTool' | 'recallSchema' | 'checkpoint' | 'summaries' };

export type EngineMessage =
  | (Call & { id: number; heard: boolean })
  | { call: 'invalidate'; from: number }
  | { call: 'abort'; id: number }
  | { call: 'answer'; id: number; answer: Answer }
  | { call: 'dispose' };

export type ToEngine = Envelope & EngineMessage;

export type Answer = { ok: true; value: unknown } | { ok: false; error: Fault };

/** What the engine asks the page to do. */
export type Ask =
  | { ask: 'put'; key: string; content: string }
  | { ask: 'get'; key: string }
  | { ask: 'summarize'; request: SummarizeRequest }
  | { ask: 'burst'; request: Parameters<BeforeBurst>[0] }
  | { ask: 'flush'; request: Parameters<Flush>[0] };

export type PageMessage =
  | { says: 'answer'; id: number; answer: Answer }
  | { says: 'event'; event: CompactorEvent }
  | (Ask & { says: 'ask'; id: number })
  /** The ask has taken too long, or its call was abandoned. */
  | { says: 'enough'; id: number; message: string };

export type ToPage = Envelope & PageMessage;

/**
 * The view: runs of the caller's own messages, from and to; others by a number, with their value
 * when they are new.
 */
export type Piece = [from: number, to: number] | { copy: number; value?: object };

export type Compacted = Outcome & { notice: string | null; view: Piece[] };
export type CompactedBody = Outcome & { notice: string | null; body: Uint8Array | undefined };

/** An error as it can be cloned. */
export interface Fault {
  code: TidemarkErrorCode | undefined;
  message: string;
  path: string | undefined;
}

export function faultOf(error: unknown): Fault {
  if (TidemarkError.isInstance(error)) {
    const { code, message, path } = error;
    return { code, message, path };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { code: undefined, message, path: undefined };
}
