/** The worker's side: import it in the script of the Web Worker, and nothing else is needed. */
import '#start';
import { Compactor, type CompactorOptions, type CompactRequest } from '../compactor.js';
import type { BurstAnswer } from '../driver.js';
import type {
  Answer,
  Ask,
  Asked,
  Call,
  Changes,
  Compacted,
  Opening,
  PageMessage,
  Piece,
  ToEngine,
  ToPage,
} from './protocol.js';
import { faultOf } from './protocol.js';

interface Scope {
  postMessage(message: ToPage): void;
  addEventListener(type: 'message', listener: (event: { data: unknown }) => void): void;
}

const scope = globalThis as unknown as Scope;
const conversations = new Map<number, Conversation>();

scope.addEventListener('message', ({ data }) => {
  const message = data as Partial<ToEngine> | null;
  if (typeof message !== 'object' || message?.tidemark !== 'worker') return;
  receive(message as ToEngine);
});

function receive(message: ToEngine): void {
  const { at } = message;
  if (message.call === 'open') conversations.set(at, new Conversation(at));
  const conversation = conversations.get(at);
  if (message.call === 'dispose') {
    conversation?.dispose();
    conversations.delete(at);
  } else if (message.call === 'invalidate') conversation?.invalidate(message.from);
  else if (message.call === 'abort') conversation?.abort(message.id);
  else if (message.call === 'answer') conversation?.answered(message.id, message.answer);
  else void conversation?.run(message);
}

class Conversation {
  readonly #at: number;
  #compactor: Compactor<object> | undefined;
  #failed: unknown;
  #messages: object[] = [];
  readonly #pinned = new WeakSet<object>();
  #tools: CompactRequest['tools'];
  #system: unknown;
  #heard = false;
  /** Asks that the page has not answered, by number. */
  readonly #asked = new Map<number, (answer: Answer) => void>();
  #asks = 0;
  readonly #calls = new Map<number, AbortController>();
  /** Numbers of messages of the last view that are not the caller's own. */
  #copies = new Map<object, number>();
  #numbered = 0;

  constructor(at: number) {
    this.#at = at;
  }

  async run(message: Call & { id: number; heard: boolean }): Promise<void> {
    const { id } = message;
    this.#heard = message.heard;
    const controller = new AbortController();
    this.#calls.set(id, controller);
    let answer: Answer;
    try {
      answer = { ok: true, value: await this.#call(message, controller.signal) };
    } catch (error) {
      answer = { ok: false, error: faultOf(error) };
    }
    this.#calls.delete(id);
    this.#post({ says: 'answer', id, answer });
  }

  invalidate(from: number): void {
    this.#compactor?.invalidate(from);
  }

  abort(id: number): void {
    this.#calls.get(id)?.abort();
  }

  answered(id: number, answer: Answer): void {
    this.#asked.get(id)?.(answer);
    this.#asked.delete(id);
  }

  dispose(): void {
    for (const controller of this.#calls.values()) controller.abort();
    this.#compactor?.dispose();
  }

  async #call(call: Call, signal: AbortSignal): Promise<unknown> {
    if (call.call === 'open') {
      try {
        return this.#open(call.opening);
      } catch (error) {
        this.#failed = error;
      }
    }
    const compactor = this.#compactor;
    if (!compactor) throw this.#failed;
    switch (call.call) {
      case 'compact':
        return this.#compact(compactor, call.changes, { ...call.request, signal });
      case 'compactBody':
        return this.#compactBody(compactor, call.body, { ...call.request, signal });
      case 'recall':
        return compactor.recall(call.args as string);
      case 'explain':
        return compactor.explain(call.index);
      case 'estimate':
        return compactor.estimate();
      case 'stats':
        return compactor.stats();
      case 'summaries':
        return compactor.summaries();
      case 'recallTool':
        return compactor.recallTool();
      case 'recallSchema':
        return compactor.recallSchema();
      case 'checkpoint':
        return compactor.checkpoint();
      default:
        return undefined;
    }
  }

  #open({ options, checkpoint, ...wanted }: Opening): void {
    const host: CompactorOptions<object> = {
      onEvent: (event) => {
        if (this.#heard) this.#post({ says: 'event', event });
      },
    };
    if (wanted.pin) host.pin = (message) => this.#pinned.has(message);
    if (wanted.store) {
      host.store = {
        put: async (key, content) => void (await this.#ask({ ask: 'put', key, content })),
        get: async (key) => (await this.#ask({ ask: 'get', key })) as string | undefined,
      };
    }
    if (wanted.summarizer) {
      host.summarizer = async (request, { signal }) =>
        (await this.#ask({ ask: 'summarize', request }, signal)) as string;
    }
    if (wanted.beforeBurst) {
      host.beforeBurst = async (request, { signal }) =>
        (await this.#ask({ ask: 'burst', request }, signal)) as BurstAnswer;
    }
    if (wanted.flush) {
      host.flush = (request, { signal }) => this.#ask({ ask: 'flush', request }, signal);
    }
    this.#compactor = new Compactor({ ...options, ...host }, checkpoint);
  }

  async #compact(
    compactor: Compactor<object>,
    { keep, fresh, pinned, tools, system }: Changes,
    request: Asked & { signal: AbortSignal },
  ): Promise<Compacted> {
    this.#messages = [...this.#messages.slice(0, keep), ...fresh];
    for (const index of pinned) this.#pinned.add(fresh[index] as object);
    if (tools !== undefined) this.#tools = tools === '' ? undefined : JSON.parse(tools);
    if (system !== undefined) this.#system = system === '' ? undefined : JSON.parse(system);
    const known = this.#messages;
    const beside = { tools: this.#tools, system: this.#system };
    const { messages, ...outcome } = await compactor.compact(known, { ...request, ...beside });
    return { ...outcome, view: this.#pieces(messages, known) };
  }

  async #compactBody(
    compactor: Compactor<object>,
    given: Uint8Array,
    request: Asked & { signal: AbortSignal },
  ): Promise<unknown> {
    const { body, ...outcome } = await compactor.compactBody(given, request);
    return { ...outcome, body: body === given ? undefined : body };
  }

  #pieces(view: readonly object[], messages: readonly object[]): Piece[] {
    const own = new Map(messages.map((message, index) => [message, index]));
    const copies = new Map<object, number>();
    const pieces: Piece[] = [];
    for (const message of view) {
      const index = own.get(message);
      const last = pieces.at(-1);
      if (index === undefined) {
        const known = this.#copies.get(message);
        const copy = known ?? ++this.#numbered;
        copies.set(message, copy);
        pieces.push(known === undefined ? { copy, value: message } : { copy });
      } else if (Array.isArray(last) && last[1] === index) last[1]++;
      else pieces.push([index, index + 1]);
    }
    this.#copies = copies;
    return pieces;
  }

  /** Has the page do something. */
  async #ask(ask: Ask, signal?: AbortSignal): Promise<unknown> {
    const id = ++this.#asks;
    const enough = () => {
      this.#asked.delete(id);
      this.#post({ says: 'enough', id, message: faultOf(signal?.reason).message });
    };
    signal?.addEventListener('abort', enough, { once: true });
    const answer = await new Promise<Answer>((resolve) => {
      this.#asked.set(id, resolve);
      this.#post({ says: 'ask', id, ...ask });
    });
    signal?.removeEventListener('abort', enough);
    if (answer.ok) return answer.value;
    throw new Error(answer.error.message);
  }

  #post(message: PageMessage): void {
    scope.postMessage({ tidemark: 'worker', at: this.#at, ...message });
  }
}
