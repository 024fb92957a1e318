import type { Session } from './session.js';
import type {
  BurstEffect,
  Effect,
  FlushEffect,
  Outcome,
  Reply,
  Step,
  Store,
  SummarizeEffect,
} from './types.js';

/** What a summarizer is asked: `system` and `prompt` for one model call, and what they cover. */
export type SummarizeRequest = Omit<SummarizeEffect, 'kind' | 'id'>;

/**
 * Writes a summary: sends `system` and `prompt` to a model and returns its text. Where it throws or
 * returns none, or the engine refuses its text twice, the built-in local summarizer takes its place.
 */
export type Summarizer = (
  request: SummarizeRequest,
  /** Aborted when the call is abandoned or takes longer than `summarizerTimeout`. */
  context: { signal: AbortSignal },
) => string | null | undefined | Promise<string | null | undefined>;

/** What the hook before a burst answers: nothing lets it begin. */
export interface BurstAnswer {
  /** The burst must not begin: the view stays as it is, even where it does not fit. */
  veto?: boolean | undefined;
  /** Indices of messages that are never to be compacted from now on. */
  pins?: number[] | undefined;
}

/** Asked before each burst. */
export type BeforeBurst = (
  burst: Omit<BurstEffect, 'kind' | 'id'>,
  context: { signal: AbortSignal },
) =>
  | BurstAnswer
  | null
  | undefined
  | void
  | Promise<BurstAnswer | null | undefined>
  | Promise<void>;

/** Handed the text of messages before they are folded into a summary, each once. */
export type Flush = (
  span: Omit<FlushEffect, 'kind' | 'id'>,
  context: { signal: AbortSignal },
) => unknown;

/** What the driver performs effects with. */
export interface Host {
  beforeBurst: BeforeBurst | undefined;
  flush: Flush | undefined;
  summarizer: Summarizer | undefined;
  store: Store | undefined;
  signal: AbortSignal | undefined;
  /** Milliseconds that a summary, and that a store's answer may take. */
  summarizerTimeout: number;
  storeTimeout: number;
  hookTimeout: number;
  started(effect: Effect): void;
  ended(effect: Effect, reply: Reply): void;
}

/**
 * Performs effects until the plan is complete: those of one step side by side. Replies go in in
 * the order of the effects, so that what is decided does not depend on which came first.
 * @throws the signal's reason when it is aborted, whatever the effects still do
 */
export async function drive<M extends object>(
  session: Session<M>,
  first: Step,
  host: Host,
): Promise<Outcome> {
  const { signal } = host;
  let step = first;
  while (step.kind === 'effects') {
    signal?.throwIfAborted();
    const work = step.effects.map(async (effect) => {
      host.started(effect);
      const reply = await perform(effect, host);
      host.ended(effect, reply);
      return { id: effect.id, reply };
    });
    const due: Effect[] = [];
    for (const { id, reply } of await untilAborted(Promise.all(work), signal)) {
      step = session.resolve(id, reply);
      if (step.kind === 'effects') due.push(...step.effects);
    }
    if (step.kind === 'effects') step = { kind: 'effects', effects: due };
  }
  // The session belongs to the compactor alone, so nobody else can have abandoned the plan.
  if (step.kind === 'idle') throw new Error('the plan was abandoned while it ran');
  return step.outcome;
}

/** Settles as `work` does, or rejects with the signal's reason as soon as it is aborted. */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (!signal) return work;
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * What `action` gives, unless it takes longer than `ms` milliseconds or `outer` is aborted: it then
 * rejects, the signal that `action` was given is aborted, and what comes later is ignored.
 */
export async function within<T>(
  ms: number,
  outer: AbortSignal | undefined,
  action: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  outer?.throwIfAborted();
  const controller = new AbortController();
  let give = (_: unknown) => {};
  const given = new Promise<never>((_, reject) => {
    give = (reason) => {
      reject(reason);
      controller.abort(reason);
    };
  });
  const late = () => give(new Error(`no answer within ${ms} ms`));
  const timer = ms === Number.POSITIVE_INFINITY ? undefined : setTimeout(late, ms);
  const abort = () => give(outer?.reason);
  outer?.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([action(controller.signal), given]);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', abort);
  }
}

/** One effect. Whatever the host throws is an answer too. */
async function perform(effect: Effect, host: Host): Promise<Reply> {
  const { store, summarizer, signal } = host;
  try {
    if (effect.kind === 'put') {
      if (!store) return { kind: 'failed', message: 'there is no store' };
      await within(host.storeTimeout, signal, () => store.put(effect.key, effect.content));
      return { kind: 'done' };
    }
    if (effect.kind === 'burst') {
      const { kind, id, ...burst } = effect;
      const answer = await within(host.hookTimeout, signal, (own) =>
        host.beforeBurst?.(burst, { signal: own }),
      );
      return { kind: 'go', veto: answer?.veto === true, pins: indices(answer?.pins) };
    }
    if (effect.kind === 'flush') {
      const { kind, id, ...span } = effect;
      await within(host.hookTimeout, signal, (own) => host.flush?.(span, { signal: own }));
      return { kind: 'done' };
    }
    const { kind, id, ...request } = effect;
    const text: unknown = await within(host.summarizerTimeout, signal, (own) =>
      summarizer?.(request, { signal: own }),
    );
    if (typeof text === 'string') return { kind: 'text', text };
    const what = text === null ? 'null' : typeof text;
    return { kind: 'failed', message: `the summarizer returned ${what}, not a string` };
  } catch (error) {
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) };
  }
}

function indices(pins: unknown): number[] {
  const fine = (pin: unknown) => Number.isInteger(pin) && Number(pin) >= 0 && Number(pin) < 2 ** 32;
  if (pins === undefined || (Array.isArray(pins) && pins.every(fine)))
    return (pins as number[]) ?? [];
  throw new Error('beforeBurst returned pins that are no indices of messages');
}
