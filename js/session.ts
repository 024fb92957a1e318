/// <reference lib="esnext.disposable" preserve="true" />
import {
  alsoKnown,
  fromEngine,
  requireObject,
  TidemarkError,
  type TidemarkErrorCode,
} from './errors.js';
import { start } from './load.js';
import { wrong } from './request.js';
import { Context, readStages } from './stage.js';
import type {
  ChatMessage,
  CustomStage,
  DecideEffect,
  EngineOptions,
  ErrorClass,
  Estimate,
  Explanation,
  MessageSize,
  OpenAIChatTool,
  PlanRequest,
  Problem,
  RecallArgs,
  RecallStep,
  RecallTool,
  Reply,
  StageName,
  StageOptions,
  Stats,
  Step,
  SummaryOptions,
  SummaryProtocols,
  SummaryVersion,
  ToolDefinition,
  WindowKey,
} from './types.js';
import { classifyError as classify, Engine } from './wasm/tidemark.js';

/** Options of a session. */
export interface SessionOptions<M = ChatMessage>
  extends Omit<EngineOptions, 'tokenizer' | 'stages' | 'summary'> {
  /** The stages, cheapest first, your own among them. @default those of the preset */
  stages?: (StageName | StageOptions | CustomStage<M>)[] | undefined;
  /**
   * Takes the place of all stages: asked on each call what is to leave the view. Nothing but this
   * decides then, so the view may stay too large; the outcome says so.
   */
  policy?: CustomStage<M>['plan'] | undefined;
  /** Shape and limits of summaries, and functions in place of parts of their making. */
  summary?: (SummaryOptions & SummaryProtocols) | undefined;
  /**
   * How text is counted: like a family of tokenizers, or by a function that gives the tokens of a
   * text, called once for each new part; where it throws, the part is estimated.
   * @default told from `model`, else 'o200k'
   */
  tokenizer?: EngineOptions['tokenizer'] | ((text: string) => number);
  /**
   * A window that another session learned for this endpoint and model from a provider's error, if
   * any: asked before each plan.
   */
  windows?: ((at: WindowKey) => number | null | undefined) | undefined;
  /** Told when this session learns one, to share it. */
  onWindow?: ((learned: WindowKey & { window: number }) => void) | undefined;
  /**
   * Marks messages that must never be compacted, by message and index. Asked whenever a message
   * is read: once, but for the newest, which is read again each time.
   */
  pin?: ((message: M, index: number) => boolean) | undefined;
}

interface Edit {
  path: (string | number)[];
  json: string;
}

type Item =
  | { kind: 'run'; from: number; to: number }
  | { kind: 'patch'; index: number; edits: Edit[] }
  | { kind: 'insert'; json: string };

interface Render {
  epoch: number;
  unit: number;
  itemsBefore: number;
  keep: number;
  lead: number;
  hidden: number;
  items: Item[];
}

/** A message of the view that is not the caller's own, and what it was made from. */
interface Copy<M> {
  source: M | undefined;
  message: M;
}

type Copies<M> = Map<string, Copy<M>>;

type Stamp = [epoch: number, unit: number, items: number];

const encoder = new TextEncoder();

/** Messages out of the view that are compared on each call: a few microseconds. */
const SLICE = 1024;

/** No value that a caller has. */
const UNKNOWN = Symbol('unknown');

const NOTHING_RENDERED: Stamp = [0xffffffff, 0, 0];

/**
 * One conversation without any I/O, for hosts that drive the loop themselves. `plan` answers with
 * effects or the outcome; perform the effects, hand each reply to `resolve`, then `render`.
 * `Compactor` does that for you.
 */
export class Session<M extends object = ChatMessage> {
  readonly #pin: ((message: M, index: number) => boolean) | undefined;
  /** The caller's own stages, by their places in the list. */
  readonly #plans: (CustomStage<M>['plan'] | undefined)[];
  #deciding = false;
  readonly #windows: SessionOptions['windows'];
  readonly #onWindow: SessionOptions['onWindow'];
  #engine: Engine | undefined;
  #failed: TidemarkError | undefined;
  /** The messages as the engine last read them. */
  #seen: M[] = [];
  /** Of them, those from the start that stand as read while they are the same objects. */
  #read = 0;
  #tools: unknown;
  #system: unknown;
  #body: Uint8Array | undefined;
  #stamp = NOTHING_RENDERED;
  /** What was rendered last. */
  #view: M[] = [];
  #copies: Copies<M> = new Map();
  /** Leading system messages, and the end of those that the view does not show. */
  #folded = { lead: 0, hidden: 0 };
  /** Of those the first that is due to be looked at, counted from the lead. */
  #checked = 0;
  /** Indices of pinned messages, ascending. */
  #pinned: number[] = [];
  /** First message that was read, again or for the first time, since the last render. */
  #fresh = 0;

  /**
   * @param checkpoint what `checkpoint()` gave: the next call must then bring the whole transcript
   * @throws {TidemarkError} `invalid_option`, `invalid_checkpoint` or `unsupported_checkpoint`
   */
  constructor(options: SessionOptions<M> = {}, checkpoint?: string) {
    requireObject(options, 'options', '{ window: 128000 }');
    const { pin, tokenizer, summary, windows, onWindow, ...rest } = options;
    const { stages: list, policy, ...engine } = rest;
    requireFunctions('options', { pin, windows, onWindow });
    if (checkpoint !== undefined && typeof checkpoint !== 'string') {
      const what = 'checkpoint: expected the string that checkpoint() gave';
      throw new TidemarkError('invalid_checkpoint', what, 'checkpoint');
    }
    const { stages, plans } = readStages(list, policy);
    start();
    this.#pin = pin;
    this.#plans = plans;
    this.#windows = windows;
    this.#onWindow = onWindow;
    const exact = typeof tokenizer === 'function' ? tokenizer : undefined;
    const { protocols, ...limits } = protocolsOf(summary);
    const named = { ...engine, ...limits, stages, ...(exact ? {} : { tokenizer }) };
    const json = write(named, 'invalid_option', 'options', replaceOdd);
    try {
      this.#engine = guard(() => new Engine(json, checkpoint));
      if (exact) this.#engine.setTokenizer(exact);
      if (protocols) this.#engine.setProtocols(...protocols);
    } catch (error) {
      throw alsoKnown(error, 'pin, policy, windows, onWindow');
    }
  }

  /**
   * Opens a session from a checkpoint, with the options of the session that gave it: a checkpoint
   * holds none. The next call must bring the whole transcript: `recall` and `estimate` need it.
   * @throws {TidemarkError} `invalid_checkpoint` or `unsupported_checkpoint`
   */
  static restore<M extends object = ChatMessage>(
    checkpoint: string,
    options: SessionOptions<M> = {},
  ): Session<M> {
    // Null, as some databases give it for what they do not have, must not open a new session.
    return new Session(options, checkpoint ?? '');
  }

  /**
   * Reads what is new of the messages. A message counts as read while the array holds the same
   * object at the same place; the last one is read again each time, since hosts stream into it.
   * After changing another message in place, call `invalidate`.
   * @throws {TidemarkError} `invalid_transcript`, naming the message
   */
  sync(messages: readonly M[]): void {
    this.#requireIdle();
    if (!Array.isArray(messages)) {
      throw new TidemarkError('invalid_transcript', 'messages: expected an array', 'messages');
    }
    const seen = this.#seen;
    const most = Math.min(this.#read, messages.length);
    const same = this.#same(messages, most);
    const from = same === seen.length && same > 0 ? same - 1 : same;
    const fresh = messages.slice(from);
    const json = encoder.encode(messagesJson(fresh, from));
    const pins = this.#pins(fresh, from);
    this.#call((engine) => engine.ingest(from, json, pins));
    // The view that was kept may hold objects that are no longer the caller's.
    if (same < seen.length) this.#stamp = NOTHING_RENDERED;
    this.#fresh = Math.min(this.#fresh, from);
    seen.length = from;
    for (const message of fresh) seen.push(message);
    this.#read = seen.length;
  }

  /** Forgets that messages from this index on were read; call it after changing one in place. */
  invalidate(from: number): void {
    this.#read = Math.min(this.#read, Math.max(0, Math.trunc(from) || 0));
    this.#stamp = NOTHING_RENDERED;
  }

  /**
   * Sets the tool schemas that go with each request, as they are sent; they count towards the
   * size. The same array is not read again.
   */
  setTools(tools: readonly unknown[] | Record<string, unknown> | undefined): void {
    if (tools === this.#tools) return;
    const json = tools ? write(tools, 'invalid_json', 'tools') : '';
    this.#call((engine) => engine.setTools(json));
    this.#tools = tools;
  }

  /**
   * Sets the instructions that go with each request beside the messages: a string, or what the
   * format has in its place; they count. The same value is not read again.
   */
  setSystem(system: unknown): void {
    if (system === this.#system) return;
    const empty = system === undefined || system === null;
    const json = empty ? '' : write(system, 'invalid_json', 'system');
    this.#call((engine) => engine.setSystem(json));
    this.#system = system;
  }

  /**
   * As `plan`, over the bytes of a whole request: its messages are the transcript; instructions,
   * tools, model and output limit are read from it. `renderBody` then gives the body to send.
   * @throws {TidemarkError} `invalid_json`, or `invalid_transcript` naming the place
   */
  planBody(body: Uint8Array, request: PlanRequest & { path?: string | undefined } = {}): Step {
    this.#requireIdle();
    const { path, ...plan } = request;
    const json = write(plan, 'invalid_option', 'request', replaceOdd);
    this.#seen = [];
    this.#read = 0;
    this.#stamp = NOTHING_RENDERED;
    this.#tools = this.#system = UNKNOWN;
    this.#body = body;
    this.#call((engine) => engine.ingestBody(body, path));
    return this.#plan(json);
  }

  /** The body to send: the same object that `planBody` got where nothing changes. */
  renderBody(): Uint8Array {
    const body = this.#body;
    if (!body) throw new TidemarkError('invalid_transcript', 'body: call planBody first', 'body');
    return this.#call((engine) => engine.renderBody()) ?? body;
  }

  /** The messages that were read, by size: where the tokens of the transcript are. */
  sizes(): MessageSize[] {
    return this.#call((engine) => engine.sizes());
  }

  /** What a provider would refuse in the messages that were read. */
  problems(): Problem[] {
    return this.#call((engine) => engine.problems());
  }

  /**
   * Compares the view with the watermarks and says what to do. A plan that still waits for
   * effects is abandoned. A transcript that ends with unanswered calls gives a view that does too:
   * the host is about to append their results.
   */
  plan(messages: readonly M[], request: PlanRequest = {}): Step {
    const json = write(request, 'invalid_option', 'request', replaceOdd);
    this.sync(messages);
    return this.#plan(json);
  }

  #plan(json: string): Step {
    const { shared, before } = this.#call((engine) => ({
      shared: this.#windows && noThrow(() => this.#windows?.(engine.windowKey())),
      before: engine.learnedWindow(),
    }));
    const usable = typeof shared === 'number' && Number.isInteger(shared) && shared < 2 ** 31;
    if (usable && shared > 0) this.#call((engine) => engine.shareWindow(shared));
    const step = this.#settle(this.#call((engine) => engine.plan(json)));
    const window = this.#onWindow && this.#call((engine) => engine.learnedWindow());
    if (window !== undefined && window !== before && window !== shared) {
      const key: WindowKey = this.#call((engine) => engine.windowKey());
      noThrow(() => this.#onWindow?.({ ...key, window }));
    }
    return this.#whole(step);
  }

  /** Gives prompts that are appended the messages that they go behind. */
  #whole(step: Step): Step {
    if (step.kind !== 'effects') return step;
    for (const effect of step.effects) {
      const { view } = effect as { view?: Item[] };
      if (effect.kind !== 'summarize' || !view) continue;
      effect.messages = view.flatMap((item) => {
        return item.kind === 'run'
          ? this.#seen.slice(item.from, item.to)
          : [this.#copy(item, new Map())];
      });
      delete (effect as { view?: Item[] }).view;
    }
    return step;
  }

  /**
   * Hands in the reply to an effect. More effects may follow once all are answered.
   * @throws {TidemarkError} `unknown_effect` or `invalid_reply`
   */
  resolve(id: number, reply: Reply): Step {
    if (!Number.isInteger(id) || id < 0) {
      throw new TidemarkError('unknown_effect', `id: no effect ${id} was issued`, 'id');
    }
    const json = write(reply, 'invalid_reply', 'reply');
    return this.#whole(this.#settle(this.#call((engine) => engine.resolve(id, json))));
  }

  /** Abandons a plan that waits for effects; late replies are ignored. */
  cancel(): void {
    this.#call((engine) => engine.cancel());
  }

  /**
   * What to send: a new array of the caller's own objects, where nothing was decided on them, and
   * of shallow copies with a value replaced. Between bursts the copies stay the same objects, but
   * for that of the newest message; do not change them.
   */
  render(): M[] {
    const rendered: Render = this.#call((engine) => engine.render(...this.#stamp));
    const { keep, items, lead, hidden, ...stamp } = rendered;
    this.#folded = { lead, hidden };
    // Should a message no longer be what was read, the next call starts over.
    this.#stamp = NOTHING_RENDERED;
    const view = this.#view;
    const copies: Copies<M> = keep > 0 ? this.#copies : new Map();
    view.length = keep;
    for (const item of items) {
      if (item.kind === 'run') {
        for (let at = item.from; at < item.to; at++) view.push(this.#seen[at] as M);
      } else {
        view.push(this.#copy(item, copies));
      }
    }
    this.#copies = copies;
    this.#fresh = this.#seen.length;
    this.#stamp = [stamp.epoch, stamp.unit, stamp.itemsBefore];
    return view.slice();
  }

  /** Size of the view as it stands, after reading what is new of the messages if they are given. */
  estimate(messages?: readonly M[]): Estimate {
    if (messages) this.sync(messages);
    return this.#call((engine) => engine.estimate());
  }

  /**
   * Why a message of the transcript, by its index, stands in the view as it does.
   * @throws {TidemarkError} `invalid_option` at `index` where no such message was read
   */
  explain(index: number): Explanation {
    if (!Number.isInteger(index) || index < 0) {
      const what = 'index: expected the index of a message that was read';
      throw new TidemarkError('invalid_option', what, 'index');
    }
    return this.#call((engine) => engine.explain(index));
  }

  /** What compaction came to so far; totals are kept in the checkpoint. */
  stats(): Stats {
    return this.#call((engine) => engine.stats());
  }

  /**
   * The recall tool as a request of the session's wire format carries it; undefined while nothing
   * is out of the view. `T` is the type that the format has for tools.
   */
  recallTool<T extends ToolDefinition = OpenAIChatTool>(): T | undefined {
    const tool = this.#call((engine) => engine.recallTool());
    return tool ? JSON.parse(tool.definition) : undefined;
  }

  /** The recall tool without the shape of a wire format, for hosts that have their own. */
  recallSchema(): RecallTool | undefined {
    const tool = this.#call((engine) => engine.recallTool());
    if (!tool) return undefined;
    const { name, description, parameters } = tool;
    return { name, description, parameters: JSON.parse(parameters) };
  }

  /**
   * Runs a recall call; arguments may be the JSON that the model wrote.
   * @throws {TidemarkError} `invalid_recall`, or `invalid_transcript` at `messages` where no call
   *   has brought the transcript yet and there is no store to ask
   */
  recall(args: RecallArgs | string): RecallStep {
    const json = recallJson(args);
    return this.#call((engine) => engine.recall(json));
  }

  /**
   * Finishes a recall call with what the store holds; anything else than that is refused.
   * @throws {TidemarkError} as `recall` does, where the content is none
   */
  recallFetched(args: RecallArgs | string, content: string | undefined): string {
    const json = recallJson(args);
    const text = typeof content === 'string' ? content : undefined;
    return this.#call((engine) => engine.recallFetched(json, text));
  }

  /** The summaries of this session, oldest first, the running one last; the last few dozen. */
  summaries(): SummaryVersion[] {
    return this.#call((engine) => engine.summaries());
  }

  /**
   * Everything that was decided, as JSON. It holds the session secret and the summary: keep it
   * as safe as the transcript.
   */
  checkpoint(): string {
    return this.#call((engine) => engine.checkpoint());
  }

  /** Frees the memory of the engine; calling it again does nothing. */
  dispose(): void {
    if (!this.#failed) this.#engine?.free();
    this.#engine = undefined;
    this.#seen = [];
    this.#view = [];
    this.#copies.clear();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** How many of the first `most` messages are the objects that were read. */
  #same(messages: readonly M[], most: number): number {
    const seen = this.#seen;
    const { lead, hidden } = this.#folded;
    if (hidden - lead <= SLICE || most < hidden) return sameUpTo(seen, messages, 0, most);
    // What the view does not show cannot change what is sent, only what recall finds: a slice of it
    // is looked at on each call, so that the cost does not grow with the transcript.
    const start = lead + this.#checked;
    const end = Math.min(start + SLICE, hidden);
    this.#checked = end === hidden ? 0 : end - lead;
    for (const [from, to] of [
      [0, lead],
      [start, end],
      [hidden, most],
    ] as const) {
      const same = sameUpTo(seen, messages, from, to);
      if (same < to) return sameUpTo(seen, messages, 0, same);
    }
    const pinned = this.#pinned.find((at) => at < hidden && seen[at] !== messages[at]);
    return pinned ?? most;
  }

  #pins(fresh: readonly M[], from: number): Uint32Array {
    const pins: number[] = [];
    if (this.#pin) {
      for (const [at, message] of fresh.entries()) {
        if (this.#pin(message, from + at)) pins.push(from + at);
      }
      this.#pinned = this.#pinned.filter((at) => at < from).concat(pins);
    }
    return Uint32Array.from(pins);
  }

  /** A message that is not the caller's own, the same object as last time where nothing changed. */
  #copy(item: Exclude<Item, { kind: 'run' }>, copies: Copies<M>): M {
    const key = item.kind === 'patch' ? JSON.stringify(item) : item.json;
    const known = this.#copies.get(key);
    let copy: Copy<M>;
    if (item.kind === 'insert') {
      copy = known ?? { source: undefined, message: JSON.parse(item.json) };
    } else {
      const source = this.#seen[item.index] as M;
      // What was read again may have been changed in place.
      const stands = known?.source === source && item.index < this.#fresh;
      copy = stands ? known : { source, message: item.edits.reduce(edited, source) };
    }
    copies.set(key, copy);
    return copy.message;
  }

  /** A stage that planned would pull the burst away from under itself. */
  #requireIdle(): void {
    if (!this.#deciding) return;
    throw new TidemarkError('invalid_decision', 'a stage must not call the session that runs it');
  }

  /** Lets the caller's own stages decide, until the engine wants something else. */
  #settle(first: Step | { kind: 'effects'; effects: DecideEffect[] }): Step {
    let step = first;
    while (step.kind === 'effects' && step.effects[0]?.kind === 'decide') {
      const effect = step.effects[0];
      const reply = JSON.stringify(this.#decide(effect));
      step = this.#call((engine) => engine.resolve(effect.id, reply));
    }
    return step as Step;
  }

  #decide({ id, position, context }: DecideEffect): Reply {
    const seen = new Context(context, this.#seen.slice(), (wanted) => {
      const json = write(wanted, 'invalid_decision', 'decision', replaceOdd);
      return this.#call((engine) => engine.propose(id, json));
    });
    this.#deciding = true;
    try {
      const result: unknown = this.#plans[position]?.(seen);
      if (!(result instanceof Promise)) return { kind: 'done' };
      result.catch(() => {});
      return { kind: 'failed', message: `the stage ${seen.stage} returned a promise` };
    } catch (error) {
      if (TidemarkError.isInstance(error) && error.code === 'internal') throw error;
      return { kind: 'failed', message: error instanceof Error ? error.message : String(error) };
    } finally {
      this.#deciding = false;
    }
  }

  #call<T>(action: (engine: Engine) => T): T {
    if (this.#failed) throw this.#failed;
    if (!this.#engine) throw new TidemarkError('disposed', 'this session was disposed of');
    const engine = this.#engine;
    try {
      return guard(() => action(engine));
    } catch (error) {
      // After a panic the memory of the engine cannot be trusted.
      if (TidemarkError.isInstance(error) && error.code === 'internal') this.#failed = error;
      throw error;
    }
  }
}

function requireFunctions(place: string, functions: Record<string, unknown>): void {
  for (const [name, own] of Object.entries(functions)) {
    if (own !== undefined && typeof own !== 'function') {
      throw wrong(`${place}.${name}`, 'expected a function');
    }
  }
}

/** What a callback gives; one that fails is not the conversation's business. */
function noThrow<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

type Protocol = ((...request: never[]) => unknown) | undefined;

/** The functions among the options of summaries, and the options without them. */
function protocolsOf(summary: SessionOptions['summary']): {
  summary?: unknown;
  protocols?: [Protocol, Protocol, Protocol, Protocol];
} {
  if (typeof summary !== 'object' || summary === null || Array.isArray(summary)) {
    return summary === undefined ? {} : { summary };
  }
  const { format, prune, build, validate, ...limits } = summary;
  requireFunctions('options.summary', { format, prune, build, validate });
  return { summary: limits, protocols: [format, prune, build, validate] };
}

/** Estimated tokens of messages as they stand, and of tool schemas with them. */
export function estimate<M extends object = ChatMessage>(
  messages: readonly M[],
  options: SessionOptions<M> & { tools?: readonly unknown[] | undefined } = {},
): Estimate {
  requireObject(options, 'options', '{ window: 128000 }');
  const { tools, ...rest } = options;
  const session = new Session<M>(rest);
  try {
    session.setTools(tools);
    return session.estimate(messages);
  } finally {
    session.dispose();
  }
}

/**
 * What a provider would refuse in these messages: the kind, the place, what the provider says, and
 * how the view mends it.
 */
export function validate<M extends object = ChatMessage>(
  messages: readonly M[],
  options: Pick<SessionOptions<M>, 'format'> = {},
): Problem[] {
  const session = new Session<M>(options);
  try {
    session.sync(messages);
    return session.problems();
  } finally {
    session.dispose();
  }
}

/** `session.plan`, for hosts that drive the loop themselves. */
export function plan<M extends object>(
  session: Session<M>,
  messages: readonly M[],
  request?: PlanRequest,
): Step {
  return session.plan(messages, request);
}

/** `session.resolve`, for hosts that drive the loop themselves. */
export function resolve<M extends object>(session: Session<M>, id: number, reply: Reply): Step {
  return session.resolve(id, reply);
}

/** `session.render`, for hosts that drive the loop themselves. */
export function render<M extends object>(session: Session<M>): M[] {
  return session.render();
}

/** Says whether a provider's error is an overflow, and which window it names. */
export function classifyError(status: number | undefined, body: string): ErrorClass {
  start();
  return guard(() => classify(status, String(body)));
}

/** The first place from `from` on where two lists differ, `to` at most. */
function sameUpTo<M>(a: readonly M[], b: readonly M[], from: number, to: number): number {
  let at = from;
  while (at < to && a[at] === b[at]) at++;
  return at;
}

function guard<T>(action: () => T): T {
  try {
    return action();
  } catch (thrown) {
    throw fromEngine(thrown);
  }
}

function recallJson(args: RecallArgs | string): string {
  return typeof args === 'string' ? args : write(args, 'invalid_recall', 'arguments');
}

function messagesJson(messages: readonly object[], from: number): string {
  const replacer = messages.some(holdsBytes) ? replaceBytes : undefined;
  try {
    return JSON.stringify(messages, replacer);
  } catch {
    const parts = messages.map((message, at) => {
      return write(message, 'invalid_transcript', `messages[${from + at}]`, replacer);
    });
    return `[${parts.join()}]`;
  }
}

type Replacer = (this: Record<string, unknown>, key: string, value: unknown) => unknown;

function write(
  value: unknown,
  code: TidemarkErrorCode,
  place: string,
  replacer?: Replacer,
): string {
  try {
    return JSON.stringify(value, replacer) ?? 'null';
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TidemarkError(code, `${place}: cannot be written as JSON: ${why}`, place, { cause });
  }
}

/** What JSON has no word for becomes null, which the engine refuses by the member's name. */
function replaceOdd(_key: string, value: unknown): unknown {
  return ['function', 'symbol', 'bigint'].includes(typeof value) ? null : value;
}

/** Whether a message holds binary data where formats have it: parts, their data, content of results. */
function holdsBytes(message: { content?: unknown } | null): boolean {
  const content = message?.content;
  return Array.isArray(content) && content.some((part) => bytesWithin(part, 5));
}

/** Looks that many levels deep, as deep as formats nest data, and not into the data of tools. */
function bytesWithin(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isBytes(value)) return true;
  if (depth === 0) return false;
  const { type } = value as { type?: unknown };
  if (type === 'json' || type === 'error-json' || type === 'tool-call') return false;
  return Object.values(value).some((inner) => bytesWithin(inner, depth - 1));
}

function isBytes(value: object): value is ArrayBufferLike | ArrayBufferView {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return true;
  return typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer;
}

/** The first bytes, which tell the size of an image, as base64. */
function head(bytes: ArrayBufferLike | ArrayBufferView): string {
  const { buffer, offset } = ArrayBuffer.isView(bytes)
    ? { buffer: bytes.buffer, offset: bytes.byteOffset }
    : { buffer: bytes, offset: 0 };
  const first = new Uint8Array(buffer, offset, Math.min(bytes.byteLength, 1024));
  return btoa(String.fromCharCode(...first));
}

/** Binary data never crosses into the engine: its size and its head are enough. */
function replaceBytes(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // A toJSON may have made something else of it already.
  const original = this[key];
  const bytes = typeof original === 'object' && original !== null && isBytes(original);
  return bytes ? { $bytes: original.byteLength, head: head(original) } : value;
}

/** A copy of the message along the path, with one value replaced, or left out. */
function edited<T extends object>(message: T, edit: Edit): T {
  if (edit.path.length === 0) return JSON.parse(edit.json);
  const copy = shallow(message);
  let holder = copy as Record<string | number, unknown>;
  for (const step of edit.path.slice(0, -1)) {
    const inner = shallow(holder[step] as object);
    holder[step] = inner;
    holder = inner as Record<string | number, unknown>;
  }
  const last = edit.path.at(-1) as string | number;
  if (edit.json === '') {
    if (Array.isArray(holder)) holder.splice(last as number, 1);
    else delete holder[last];
  } else holder[last] = JSON.parse(edit.json);
  return copy;
}

function shallow<T extends object>(value: T): T {
  if (Array.isArray(value)) return value.slice() as unknown as T;
  return Object.setPrototypeOf({ ...value }, Object.getPrototypeOf(value));
}
