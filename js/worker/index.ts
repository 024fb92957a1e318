/// <reference lib="esnext.disposable" preserve="true" />
/**
 * The engine in a Web Worker, behind the methods of a compactor. This is the page's side, without
 * the engine; the worker's script imports `tidemark/worker/engine`.
 */
import type {
  CompactBodyRequest,
  CompactBodyResult,
  CompactorEvent,
  CompactorOptions,
  CompactRequest,
  CompactResult,
} from '../compactor.js';
import { InternalError, requireObject, TidemarkError } from '../errors.js';
import { BODY_REQUEST, checkHost, checkRequest, planRequest, REQUEST, wrong } from '../request.js';
import type {
  ChatMessage,
  EngineOptions,
  Estimate,
  Explanation,
  OpenAIChatTool,
  RecallArgs,
  RecallTool,
  Stats,
  SummaryOptions,
  SummaryVersion,
  ToolDefinition,
} from '../types.js';
import {
  type Answer,
  type Ask,
  type Asked,
  type Call,
  type Changes,
  type Compacted,
  type CompactedBody,
  type EngineMessage,
  type Fault,
  faultOf,
  type Piece,
  type ToEngine,
  type ToPage,
} from './protocol.js';

/** A Web Worker whose script imports `tidemark/worker/engine`. */
export interface EngineWorker {
  postMessage(message: unknown): void;
  addEventListener(
    type: string,
    listener: (event: { data?: unknown; message?: string }) => void,
  ): void;
}

/** Options of a compactor whose engine is in a worker. */
export interface WorkerCompactorOptions<M = ChatMessage>
  extends Omit<
    CompactorOptions<M>,
    'tokenizer' | 'stages' | 'policy' | 'summary' | 'windows' | 'onWindow'
  > {
  /** The stages; one of the caller's own cannot go to the worker. */
  stages?: EngineOptions['stages'];
  /** A family of tokenizers; a function cannot be called from the worker. */
  tokenizer?: EngineOptions['tokenizer'];
  /** Shape and limits of summaries, without functions. */
  summary?: SummaryOptions | undefined;
}

interface Pending {
  /** Keeps the conversation while a call of it runs. */
  compactor: WorkerCompactor<never>;
  settle(answer: Answer): void;
}

/** What a worker holds: its conversations, and the calls that wait for it. */
interface Link {
  conversations: Map<number, WeakRef<WorkerCompactor<never>>>;
  pending: Map<number, Pending>;
  /** It has answered: its script runs. */
  alive: boolean;
  failed: InternalError | undefined;
}

const links = new WeakMap<EngineWorker, Link>();
let numbered = 0;

/** Frees in the worker what became garbage here. */
const garbage = new FinalizationRegistry<() => void>((dispose) => dispose());

/**
 * A compactor whose engine is in a Web Worker: the page stays responsive while long transcripts are
 * read. It does what a `Compactor` does; every answer is a promise. The summarizer, the store and
 * `pin` run here. Many conversations can share one worker.
 */
export class WorkerCompactor<M extends object = ChatMessage> {
  readonly #at = ++numbered;
  readonly #worker: EngineWorker;
  readonly #link: Link;
  readonly #options: WorkerCompactorOptions<M>;
  readonly #listeners = new Set<(event: CompactorEvent) => unknown>();
  /** What the engine asked for and waits for. */
  readonly #asked = new Map<number, AbortController>();
  #disposed = false;
  /** Messages as the worker has them. */
  #sent: M[] = [];
  #tools: unknown;
  #system: unknown;
  /** Messages of the last view that are not the caller's own, by number. */
  #copies = new Map<number, M>();

  private constructor(worker: EngineWorker, options: WorkerCompactorOptions<M>) {
    this.#worker = worker;
    this.#options = options;
    this.#link = linkOf(worker);
    this.#link.conversations.set(this.#at, new WeakRef(this as unknown as WorkerCompactor<never>));
    if (options.onEvent) this.#listeners.add(options.onEvent);
    const [at, { conversations }] = [this.#at, this.#link];
    const dispose = () => {
      conversations.delete(at);
      worker.postMessage({ tidemark: 'worker', at, call: 'dispose' } satisfies ToEngine);
    };
    garbage.register(this, dispose, this);
  }

  /** @throws {TidemarkError} `invalid_option`, naming it */
  static async open<M extends object = ChatMessage>(
    worker: EngineWorker,
    options: WorkerCompactorOptions<M> = {},
  ): Promise<WorkerCompactor<M>> {
    return WorkerCompactor.#open(worker, options, undefined);
  }

  /**
   * Resumes from a checkpoint, also one of a `Compactor`; see `Compactor.restore`.
   * @throws {TidemarkError} `invalid_checkpoint` or `unsupported_checkpoint`
   */
  static async restore<M extends object = ChatMessage>(
    worker: EngineWorker,
    checkpoint: string,
    options: WorkerCompactorOptions<M> = {},
  ): Promise<WorkerCompactor<M>> {
    return WorkerCompactor.#open(worker, options, checkpoint ?? '');
  }

  static async #open<M extends object>(
    worker: EngineWorker,
    options: WorkerCompactorOptions<M>,
    checkpoint: string | undefined,
  ): Promise<WorkerCompactor<M>> {
    requireObject(options, 'options', '{ window: 128000 }');
    checkHost(options as Parameters<typeof checkHost>[0]);
    const { pin, store, summarizer, beforeBurst, flush, onEvent: _, ...rest } = options;
    if (pin !== undefined && typeof pin !== 'function') {
      throw wrong('options.pin', 'expected a function');
    }
    for (const [place, holder] of [
      ['options', rest],
      ['options.summary', rest.summary ?? {}],
    ] as const) {
      for (const [name, value] of Object.entries(holder)) {
        if (typeof value !== 'function') continue;
        throw wrong(`${place}.${name}`, 'a function cannot go to a worker');
      }
    }
    const compactor = new WorkerCompactor(worker, options);
    const opening = {
      options: rest,
      checkpoint,
      pin: pin !== undefined,
      store: store !== undefined,
      summarizer: summarizer !== undefined,
      beforeBurst: beforeBurst !== undefined,
      flush: flush !== undefined,
    };
    try {
      await compactor.#call({ call: 'open', opening });
    } catch (error) {
      compactor.dispose();
      throw error;
    }
    return compactor;
  }

  /** See `Compactor.compact`. Messages go to the worker as structured clones, each once. */
  async compact<T extends M>(
    messages: readonly T[],
    request: CompactRequest = {},
  ): Promise<CompactResult<T>> {
    checkRequest(request, REQUEST);
    if (!Array.isArray(messages)) {
      throw new TidemarkError('invalid_transcript', 'messages: expected an array', 'messages');
    }
    const own = messages.slice() as T[];
    const asked = planRequest(request);
    const changes = this.#changes(own, request);
    try {
      const call = { call: 'compact', changes, request: asked } as const;
      const { view, ...outcome } = (await this.#call(call, request.signal)) as Compacted;
      return { ...outcome, messages: this.#view(view, own) };
    } catch (error) {
      // What the worker made of them is uncertain: they are sent again.
      this.#sent.length = Math.min(this.#sent.length, changes.keep);
      this.#tools = this.#system = this;
      throw error;
    }
  }

  /** See `Compactor.compactBody`. */
  async compactBody(
    body: Uint8Array,
    request: CompactBodyRequest = {},
  ): Promise<CompactBodyResult> {
    checkRequest(request, BODY_REQUEST);
    if (!(body instanceof Uint8Array)) throw wrong('body', 'expected the bytes of a request');
    const asked: Asked = { ...planRequest(request), path: request.path };
    // A clone of a part of a buffer would hold the whole buffer.
    const bytes = body.byteLength === body.buffer.byteLength ? body : body.slice();
    const call = { call: 'compactBody', body: bytes, request: asked } as const;
    const result = (await this.#call(call, request.signal)) as CompactedBody;
    return { ...result, body: result.body ?? body };
  }

  /** Size of the view as the last call left it. */
  async estimate(): Promise<Estimate> {
    return (await this.#call({ call: 'estimate' })) as Estimate;
  }

  /** See `Compactor.explain`. */
  async explain(index: number): Promise<Explanation> {
    return (await this.#call({ call: 'explain', index })) as Explanation;
  }

  /** See `Compactor.stats`. */
  async stats(): Promise<Stats> {
    return (await this.#call({ call: 'stats' })) as Stats;
  }

  /** See `Compactor.summaries`. */
  async summaries(): Promise<SummaryVersion[]> {
    return (await this.#call({ call: 'summaries' })) as SummaryVersion[];
  }

  /** See `Compactor.recallTool`. */
  async recallTool<T extends ToolDefinition = OpenAIChatTool>(): Promise<T | undefined> {
    return (await this.#call({ call: 'recallTool' })) as T | undefined;
  }

  /** See `Compactor.recallSchema`. */
  async recallSchema(): Promise<RecallTool | undefined> {
    return (await this.#call({ call: 'recallSchema' })) as RecallTool | undefined;
  }

  /** See `Compactor.recall`. */
  async recall(args: RecallArgs | string): Promise<string> {
    return (await this.#call({ call: 'recall', args })) as string;
  }

  /** See `Compactor.checkpoint`. */
  async checkpoint(): Promise<string> {
    return (await this.#call({ call: 'checkpoint' })) as string;
  }

  /** Forgets that messages from this index on were read; call it after changing one in place. */
  invalidate(from: number): void {
    this.#sent.length = Math.min(this.#sent.length, Math.max(0, Math.trunc(from) || 0));
    this.#post({ call: 'invalidate', from });
  }

  /** See `Compactor.on`. */
  on<K extends CompactorEvent['type']>(
    type: K,
    listener: (event: Extract<CompactorEvent, { type: K }>) => void,
  ): () => void {
    const hear = (event: CompactorEvent) => {
      if (event.type !== type) return undefined;
      return listener(event as Extract<CompactorEvent, { type: K }>);
    };
    this.#listeners.add(hear);
    return () => {
      this.#listeners.delete(hear);
    };
  }

  /** Frees the memory of the engine, and abandons what still runs. The worker goes on. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    garbage.unregister(this);
    this.#link.conversations.delete(this.#at);
    const { code, message, path } = disposed();
    for (const [id, { compactor, settle }] of this.#link.pending) {
      if (compactor !== (this as unknown)) continue;
      this.#link.pending.delete(id);
      settle({ ok: false, error: { code, message, path } });
    }
    if (!this.#link.failed) this.#post({ call: 'dispose' });
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** @internal Performs what the engine asks for. */
  async perform(ask: Ask & { id: number }): Promise<void> {
    let answer: Answer;
    const controller = new AbortController();
    this.#asked.set(ask.id, controller);
    try {
      answer = { ok: true, value: await this.#perform(ask, controller.signal) };
    } catch (error) {
      answer = { ok: false, error: faultOf(error) };
    }
    this.#asked.delete(ask.id);
    if (this.#disposed) return;
    try {
      this.#post({ call: 'answer', id: ask.id, answer });
    } catch (error) {
      // What a store or a summarizer gave cannot be cloned.
      this.#post({ call: 'answer', id: ask.id, answer: { ok: false, error: faultOf(error) } });
    }
  }

  /** @internal The engine waits for that no longer. */
  enough(id: number, reason: unknown): void {
    this.#asked.get(id)?.abort(reason);
  }

  /** @internal */
  hear(event: CompactorEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        const result = listener(event);
        if (result instanceof Promise) result.catch(() => {});
      } catch {}
    }
  }

  async #perform(ask: Ask, signal: AbortSignal): Promise<unknown> {
    const { store, summarizer, beforeBurst, flush } = this.#options;
    const context = { signal };
    switch (ask.ask) {
      case 'put':
        return void (await store?.put(ask.key, ask.content));
      case 'get':
        return store?.get(ask.key);
      case 'summarize':
        return summarizer?.(ask.request, context);
      case 'burst':
        return beforeBurst?.(ask.request, context);
      default:
        return void (await flush?.(ask.request, context));
    }
  }

  /** What the worker has not seen; the last message is always among it, since hosts stream into it. */
  #changes(messages: readonly M[], request: CompactRequest): Changes {
    const sent = this.#sent;
    const most = Math.min(sent.length, messages.length);
    let same = 0;
    while (same < most && sent[same] === messages[same]) same++;
    const keep = same === sent.length && same > 0 ? same - 1 : same;
    const fresh = messages.slice(keep);
    const { pin } = this.#options;
    const pinned = fresh.flatMap((message, at) => (pin?.(message, keep + at) ? [at] : []));
    const changes: Changes = { keep, fresh, pinned };
    if (request.tools !== this.#tools) {
      changes.tools = request.tools ? written(request.tools, 'tools') : '';
    }
    if (request.system !== this.#system) {
      changes.system = request.system === undefined ? '' : written(request.system, 'system');
    }
    this.#sent = messages.slice();
    this.#tools = request.tools;
    this.#system = request.system;
    return changes;
  }

  #view<T extends M>(pieces: readonly Piece[], own: readonly T[]): T[] {
    const copies = new Map<number, M>();
    const view: T[] = [];
    for (const piece of pieces) {
      if (Array.isArray(piece)) {
        for (let at = piece[0]; at < piece[1]; at++) view.push(own[at] as T);
      } else {
        const message = (piece.value ?? this.#copies.get(piece.copy)) as T;
        copies.set(piece.copy, message);
        view.push(message);
      }
    }
    this.#copies = copies;
    return view;
  }

  async #call(call: Call, signal?: AbortSignal): Promise<unknown> {
    if (this.#disposed) throw disposed();
    const { pending, failed } = this.#link;
    if (failed) throw failed;
    signal?.throwIfAborted();
    const id = ++numbered;
    const compactor = this as unknown as WorkerCompactor<never>;
    const answered = new Promise<Answer>((settle) => {
      pending.set(id, { compactor, settle });
    });
    let abort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      abort = () => {
        this.#post({ call: 'abort', id });
        // The engine waits for nothing of this call any more.
        for (const asked of this.#asked.values()) asked.abort(signal?.reason);
        reject(signal?.reason);
      };
    });
    signal?.addEventListener('abort', abort, { once: true });
    try {
      this.#post({ ...call, id, heard: this.#listeners.size > 0 });
      const answer = await Promise.race([answered, aborted]);
      if (answer.ok) return answer.value;
      throw errorOf(answer.error);
    } finally {
      signal?.removeEventListener('abort', abort);
      pending.delete(id);
    }
  }

  #post(message: EngineMessage): void {
    const whole: ToEngine = { tidemark: 'worker', at: this.#at, ...message };
    try {
      try {
        this.#worker.postMessage(whole);
      } catch (error) {
        if (whole.call !== 'compact') throw error;
        // What cannot be cloned, a URL or a function, goes as JSON has it.
        const fresh = whole.changes.fresh.map(plain);
        this.#worker.postMessage({ ...whole, changes: { ...whole.changes, fresh } });
      }
    } catch (cause) {
      if (TidemarkError.isInstance(cause)) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      const what = `this cannot go to a worker: ${why}`;
      throw new TidemarkError('invalid_option', what, undefined, { cause });
    }
  }
}

function linkOf(worker: EngineWorker): Link {
  const known = links.get(worker);
  if (known) return known;
  const link: Link = {
    conversations: new Map(),
    pending: new Map(),
    alive: false,
    failed: undefined,
  };
  links.set(worker, link);
  worker.addEventListener('message', ({ data }) => {
    const message = data as ToPage | null;
    if (typeof message !== 'object' || message?.tidemark !== 'worker') return;
    link.alive = true;
    if (message.says === 'answer') {
      link.pending.get(message.id)?.settle(message.answer);
      return;
    }
    const compactor = link.conversations.get(message.at)?.deref();
    if (message.says === 'event') compactor?.hear(message.event);
    else if (message.says === 'enough') compactor?.enough(message.id, new Error(message.message));
    else void compactor?.perform(message);
  });
  worker.addEventListener('error', ({ message }) => {
    // Once the script runs an error is one of the host's own code there.
    if (link.alive) return;
    link.failed = new InternalError(`the worker failed: ${message ?? 'its script was not loaded'}`);
    const { code, path } = link.failed;
    for (const { settle } of link.pending.values()) {
      settle({ ok: false, error: { code, path, message: link.failed.message } });
    }
  });
  return link;
}

function errorOf({ code, message, path }: Fault): Error {
  if (code === undefined) return new Error(message);
  if (code === 'internal') return new InternalError(message);
  return new TidemarkError(code, message, path);
}

function disposed(): TidemarkError {
  return new TidemarkError('disposed', 'this session was disposed of');
}

function plain(message: object, at: number): object {
  return JSON.parse(written(message, `messages[${at}]`));
}

function written(value: unknown, place: string): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const what = `${place}: cannot be written as JSON: ${why}`;
    throw new TidemarkError('invalid_transcript', what, place, { cause });
  }
}
