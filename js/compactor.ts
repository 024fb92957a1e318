/// <reference lib="esnext.disposable" preserve="true" />
import {
  type BeforeBurst,
  drive,
  type Flush,
  type Host,
  type Summarizer,
  untilAborted,
  within,
} from './driver.js';
import { alsoKnown, requireObject } from './errors.js';
import {
  BODY_REQUEST,
  checkHost,
  checkRequest,
  milliseconds,
  planRequest,
  REQUEST,
  wrong,
} from './request.js';
import { Session, type SessionOptions } from './session.js';
import type {
  ChatMessage,
  Effect,
  Estimate,
  Explanation,
  Notice,
  OpenAIChatTool,
  Outcome,
  RecallArgs,
  RecallTool,
  Reply,
  Stats,
  Step,
  Store,
  SummaryVersion,
  ToolDefinition,
} from './types.js';

/** Options of a compactor. */
export interface CompactorOptions<M = ChatMessage>
  extends Omit<SessionOptions<M>, 'store' | 'summarizer' | 'beforeBurst' | 'flush'> {
  /** Writes summaries with a model. @default the built-in local summarizer, without any model */
  summarizer?: Summarizer | undefined;
  /** Keeps large results that leave the view. @default none: recall reads the transcript */
  store?: Store | undefined;
  /**
   * Milliseconds that one summary may take, or Infinity; past it the call is aborted and the local
   * summarizer takes over. @default 120000
   */
  summarizerTimeout?: number | undefined;
  /** Milliseconds that one answer of the store may take, or Infinity. @default 30000 */
  storeTimeout?: number | undefined;
  /**
   * Asked before each burst: may veto it, or pin messages. Where it throws or takes too long, the
   * burst begins.
   */
  beforeBurst?: BeforeBurst | undefined;
  /**
   * Handed the text of messages before they are folded into a summary or dropped, each once, to save
   * what you want of them elsewhere. Whatever it does, the burst goes on.
   */
  flush?: Flush | undefined;
  /** Milliseconds that `beforeBurst` and `flush` may take, or Infinity. @default 30000 */
  hookTimeout?: number | undefined;
  /** Hears every event; `on` listens to one type. */
  onEvent?: ((event: CompactorEvent) => void) | undefined;
}

/**
 * Real size of the last request, in the shape of the provider that reported it. Cached tokens
 * count; where the provider reports them apart, they are added.
 */
export type UsageReport =
  | number
  | { inputTokens: number | undefined }
  | { prompt_tokens: number }
  | { promptTokenCount: number }
  | {
      input_tokens: number;
      cache_read_input_tokens?: number | null | undefined;
      cache_creation_input_tokens?: number | null | undefined;
    };

/** What goes with one call of `compact`. */
export interface CompactRequest {
  /**
   * Tool schemas that go with the request; they count. The same array is not read again. Leave the
   * recall tool out: its schema counts by itself once it is offered.
   */
  tools?: readonly unknown[] | Record<string, unknown> | undefined;
  /** Instructions that go with the request beside the messages, where the format has them there. */
  system?: unknown;
  /** Usage that the provider reported for the last view; used once. */
  usage?: UsageReport | null | undefined;
  /** The provider's error, as it was thrown, where it refused the last view: compacts until it fits. */
  overflow?: unknown;
  /** Compact as far as possible, whatever the size. */
  force?: boolean | undefined;
  /** What a summary should give the most room to. */
  focus?: string | undefined;
  /** A summary is to start over from the first message, without the previous one. */
  fresh?: boolean | undefined;
  /** Say what would be decided, and decide nothing; the summarizer and the store are not called. */
  dryRun?: boolean | undefined;
  /**
   * The provider keeps the conversation itself (`previous_response_id`, `conversation`): the
   * messages are only what is new, and nothing is touched.
   */
  serverHistory?: boolean | undefined;
  /** Abandons the call: it rejects with the signal's reason, and nothing half done remains. */
  signal?: AbortSignal | undefined;
}

/** The view, and what was done to get it. */
export interface CompactResult<M = ChatMessage> extends Outcome {
  /**
   * What to send: the caller's own objects wherever nothing was decided on them. It ends with
   * unanswered calls if the transcript does: the host is about to append their results.
   */
  messages: M[];
  /** The first notice in words, or null. */
  notice: string | null;
}

/** What goes with one call of `compactBody`. */
export interface CompactBodyRequest extends Omit<CompactRequest, 'tools' | 'system'> {
  /** Path of the request's URL: it tells the wire format where the messages do not. */
  path?: string | undefined;
}

/** The body to send, and what was done to get it. */
export interface CompactBodyResult extends Outcome {
  /** The same object as the body given where nothing changes. */
  body: Uint8Array;
  /** The first notice in words, or null. */
  notice: string | null;
}

/** What a compactor tells its listeners. */
export type CompactorEvent =
  /** A burst began; its first effects, none where it needs none. */
  | { type: 'burst:before'; effects: readonly Effect[] }
  /** The burst is over; not sent where the call was aborted. */
  | { type: 'burst:after'; outcome: Outcome }
  | { type: 'effect:start'; effect: Effect }
  | { type: 'effect:end'; effect: Effect; reply: Reply }
  | { type: 'notice'; notice: Notice }
  /** The store threw where recall asked it; the answer then is that nothing was found. */
  | { type: 'store:failed'; key: string; error: unknown };

type EventOf<K extends CompactorEvent['type']> = Extract<CompactorEvent, { type: K }>;

/**
 * Keeps one conversation inside its context window: call `compact` before every model call, and
 * send what it returns. Each conversation needs one of its own.
 */
export class Compactor<M extends object = ChatMessage> {
  readonly #session: Session<M>;
  readonly #summarizer: Summarizer | undefined;
  readonly #store: Store | undefined;
  readonly #hooks: Pick<Host, 'beforeBurst' | 'flush'>;
  readonly #timeouts: Pick<Host, 'summarizerTimeout' | 'storeTimeout' | 'hookTimeout'>;
  /** The tools and instructions of the last call that was accepted. */
  #beside: Pick<CompactRequest, 'tools' | 'system'> = {};
  readonly #listeners = new Set<(event: CompactorEvent) => unknown>();
  /** Settles when the running call is over. */
  #running: Promise<unknown> = Promise.resolve();

  /**
   * @param checkpoint what `checkpoint()` gave, to resume from; see `restore`
   * @throws {TidemarkError} `invalid_option`, naming it
   */
  constructor(options: CompactorOptions<M> = {}, checkpoint?: string) {
    requireObject(options, 'options', '{ window: 128000 }');
    const { summarizer, store, onEvent, beforeBurst, flush, ...others } = options;
    const { summarizerTimeout, storeTimeout, hookTimeout, ...session } = others;
    checkHost(options);
    this.#summarizer = summarizer;
    this.#store = store;
    this.#timeouts = {
      summarizerTimeout: milliseconds('summarizerTimeout', summarizerTimeout, 120_000),
      storeTimeout: milliseconds('storeTimeout', storeTimeout, 30_000),
      hookTimeout: milliseconds('hookTimeout', hookTimeout, 30_000),
    };
    this.#hooks = { beforeBurst, flush };
    if (onEvent) this.#listeners.add(onEvent);
    const host = {
      summarizer: summarizer !== undefined,
      store: store !== undefined,
      beforeBurst: beforeBurst !== undefined,
      flush: flush !== undefined,
    };
    try {
      this.#session = new Session<M>({ ...session, ...host }, checkpoint);
    } catch (error) {
      throw alsoKnown(error, 'onEvent, summarizerTimeout, storeTimeout, hookTimeout');
    }
  }

  /**
   * Resumes from a checkpoint. Give it the options of the compactor that made it: a checkpoint
   * holds no window, store or summarizer. Then call `compact` with the whole transcript, before
   * `recall` and `estimate`, which need it.
   * @throws {TidemarkError} `invalid_checkpoint` or `unsupported_checkpoint`
   */
  static restore<M extends object = ChatMessage>(
    checkpoint: string,
    options: CompactorOptions<M> = {},
  ): Compactor<M> {
    // Null, as some databases give it for what they do not have, must not open a new session.
    return new Compactor(options, checkpoint ?? '');
  }

  /**
   * Call it before every model call with the whole transcript; send `messages` of the result.
   * The transcript is not changed. Calls wait for each other.
   * @throws {TidemarkError} about the input; nothing has changed then
   */
  compact<T extends M>(
    messages: readonly T[],
    request: CompactRequest = {},
  ): Promise<CompactResult<T>> {
    return this.#queue(request, () => this.#compact(messages, request));
  }

  /**
   * The same over the bytes of a whole request, for proxies and middleware: finds messages, system,
   * tools, model and output limit, and splices the edits in; every untouched byte stays.
   * The recall tool is not added to the body: where nobody runs it, open the compactor with
   * `recall: false`.
   * @throws {TidemarkError} about the body; nothing has changed then
   */
  compactBody(body: Uint8Array, request: CompactBodyRequest = {}): Promise<CompactBodyResult> {
    return this.#queue(request, async () => {
      checkRequest(request, BODY_REQUEST);
      if (!(body instanceof Uint8Array)) throw wrong('body', 'expected the bytes of a request');
      const { path } = request;
      const first = this.#session.planBody(body, { ...planRequest(request), path });
      const outcome = await this.#run(first, request.signal);
      return { ...outcome, body: this.#session.renderBody() };
    });
  }

  #queue<R>(request: CompactRequest, action: () => Promise<R>): Promise<R> {
    const before = this.#running;
    const turn = (async () => {
      await untilAborted(before, request?.signal);
      return action();
    })();
    // The results themselves must not be kept: the chain would hold every one of them.
    this.#running = Promise.allSettled([before, turn]).then(() => undefined);
    return turn;
  }

  async #compact<T extends M>(
    messages: readonly T[],
    request: CompactRequest,
  ): Promise<CompactResult<T>> {
    checkRequest(request, REQUEST);
    const session = this.#session;
    const wanted = planRequest(request);
    const { tools, system } = request;
    let first: Step;
    try {
      session.setTools(tools);
      session.setSystem(system);
      first = session.plan(messages, wanted);
    } catch (error) {
      session.setTools(this.#beside.tools);
      session.setSystem(this.#beside.system);
      throw error;
    }
    this.#beside = { tools, system };
    const outcome = await this.#run(first, request.signal);
    return { ...outcome, messages: session.render() as T[] };
  }

  async #run(
    first: Step,
    signal: AbortSignal | undefined,
  ): Promise<Outcome & { notice: string | null }> {
    const session = this.#session;
    const effects = first.kind === 'effects' ? first.effects : [];
    const burst = effects.length > 0 || (first.kind === 'done' && first.outcome.compacted);
    if (burst) this.#emit({ type: 'burst:before', effects });
    let outcome: Outcome;
    try {
      outcome = await drive(session, first, this.#host(signal));
    } catch (error) {
      session.cancel();
      throw error;
    }
    if (burst) this.#emit({ type: 'burst:after', outcome });
    for (const notice of outcome.notices) this.#emit({ type: 'notice', notice });
    return { ...outcome, notice: outcome.notices[0]?.message ?? null };
  }

  /** Size of the view as the last call left it. */
  estimate(): Estimate {
    return this.#session.estimate();
  }

  /**
   * Why a message of the transcript, by its index, stands in the view as it does.
   * @throws {TidemarkError} `invalid_option` at `index` where the last call brought no such message
   */
  explain(index: number): Explanation {
    return this.#session.explain(index);
  }

  /** What compaction came to so far: size, tokens saved, calls, an estimate of the next burst. */
  stats(): Stats {
    return this.#session.stats();
  }

  /**
   * The recall tool, to go with the tools of the next model call; undefined while nothing is out of
   * the view. Ask anew for each request. `T` is the type that the wire format has for tools.
   */
  recallTool<T extends ToolDefinition = OpenAIChatTool>(): T | undefined {
    return this.#session.recallTool<T>();
  }

  /** The recall tool without the shape of a wire format, for hosts that have their own. */
  recallSchema(): RecallTool | undefined {
    return this.#session.recallSchema();
  }

  /**
   * Runs a call of the recall tool; give it the arguments as the model wrote them, parsed or not.
   * The answer is text for the model, also where nothing is found. After `restore`, call `compact`
   * first.
   * @throws {TidemarkError} `invalid_recall`: hand its message to the model; `invalid_transcript` at
   *   `messages` where no `compact` has brought the transcript yet and the store has no answer
   */
  async recall(args: RecallArgs | string): Promise<string> {
    const step = this.#session.recall(args);
    if (step.kind === 'page') return step.text;
    let content: string | undefined;
    try {
      const store = this.#store;
      const { storeTimeout } = this.#timeouts;
      content = await within(storeTimeout, undefined, () => store?.get(step.key));
    } catch (error) {
      // A store that fails holds nothing for us; the answer then says that nothing was found.
      this.#emit({ type: 'store:failed', key: step.key, error });
    }
    return this.#session.recallFetched(args, content);
  }

  /**
   * Everything that was decided, as JSON, to resume from; save it after each `compact` that
   * compacted. It holds the session secret and the summary: keep it as safe as the transcript.
   */
  checkpoint(): string {
    return this.#session.checkpoint();
  }

  /** The summaries of this session, oldest first, the running one last; the last few dozen. */
  summaries(): SummaryVersion[] {
    return this.#session.summaries();
  }

  /** Forgets that messages from this index on were read; call it after changing one in place. */
  invalidate(from: number): void {
    this.#session.invalidate(from);
  }

  /** Listens; returns what stops it. A listener that throws does not disturb the compaction. */
  on<K extends CompactorEvent['type']>(type: K, listener: (event: EventOf<K>) => void): () => void {
    const hear = (event: CompactorEvent) => {
      return event.type === type ? listener(event as EventOf<K>) : undefined;
    };
    this.#listeners.add(hear);
    return () => {
      this.#listeners.delete(hear);
    };
  }

  /** Frees the memory of the engine; calling it again does nothing. */
  dispose(): void {
    this.#session.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #host(signal: AbortSignal | undefined): Host {
    return {
      summarizer: this.#summarizer,
      store: this.#store,
      ...this.#hooks,
      ...this.#timeouts,
      signal,
      started: (effect) => this.#emit({ type: 'effect:start', effect }),
      ended: (effect, reply) => this.#emit({ type: 'effect:end', effect, reply }),
    };
  }

  /** A listener looks on: what it fails at, now or later, is not the conversation's business. */
  #emit(event: CompactorEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        const result = listener(event);
        if (result instanceof Promise) result.catch(() => {});
      } catch {}
    }
  }
}
