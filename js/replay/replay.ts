// A recorded session sent through a policy, call by call, and what each call would have cost.
import type { ChatMessage } from '../types.js';
import { fromModel } from './identifiers.js';
import {
  type CachePrices,
  type Charge,
  OPENAI_PRICES,
  PrefixCache,
  type Segment,
  sum,
} from './prices.js';
import { LongRange, type Retention, retained } from './retention.js';
import { refusal } from './validity.js';

/**
 * What makes the view for one model call of the transcript up to there. It is called for every
 * call of one session in order, and may keep state between them.
 */
export type Policy = (
  messages: readonly ChatMessage[],
  turn: Turn,
) => PolicyView | Promise<PolicyView>;

/** What a policy may know of the call, and must report. */
export interface Turn {
  /** Number of the call, from 0. */
  call: number;
  /** Real size of the last request, tokens; undefined at the first call. */
  usage: number | undefined;
  /**
   * Says that a model was asked for a summary: the request and the answer are priced.
   * @param behind what the policy adds to the tools of a request, where this one goes behind the
   * view and so has the tools of all; without it the request has none
   */
  asked(
    messages: readonly ChatMessage[],
    answer: string,
    behind?: readonly unknown[] | undefined,
  ): void;
}

/** A view, and how to get at what it leaves out. */
export interface PolicyView {
  messages: readonly ChatMessage[];
  /** Tools that the policy adds to the request. */
  tools?: readonly unknown[] | undefined;
  /** Whether something in this view leads the model to a text that holds the identifier. */
  recalls?: ((identifier: string) => boolean | Promise<boolean>) | undefined;
  /** Milliseconds of work, where the policy runs elsewhere. @default as measured here */
  milliseconds?: number | undefined;
}

/** Options of a replay. */
export interface ReplayOptions {
  /** Context window, tokens: what calls over it are counted by, and what is long ago. */
  window: number;
  /** Tokens of a text. */
  count: (text: string) => number;
  /** Prices, and the rules of the cache. @default OPENAI_PRICES */
  prices?: CachePrices | undefined;
  /**
   * Seconds since the session's start at which a call is made, by the message that answers it.
   * @default 20 seconds for each call: the cache stays warm
   */
  clock?: ((index: number, call: number) => number) | undefined;
  /** Tools of the session, part of every request. */
  tools?: readonly unknown[] | undefined;
  /**
   * Text and tokens of a message or of the tools: what must be the same to be read from the cache,
   * and its size. @default as OpenAI Chat Completions has them, counted by `count`
   */
  weigh?: ((value: unknown) => { text: string; tokens: number }) | undefined;
  /** Why a provider would refuse a view, or null. @default by the rules of OpenAI Chat Completions */
  refusal?: ((messages: readonly ChatMessage[]) => string | null) | undefined;
  /** Hears of every call. */
  onCall?: ((call: CallReport) => void) | undefined;
}

/** One call. */
export interface CallReport {
  /** Number of the call, from 0. */
  call: number;
  /** The message that answers it. */
  index: number;
  /** Tokens of the request. */
  tokens: number;
  charge: Charge;
  /** Summary calls made for it. */
  summaries: Charge[];
  /** The view is not an extension of the last one. */
  rewritten: boolean;
  /** Why a strict provider would refuse the view, or null. */
  refused: string | null;
  retention: Retention;
  /** Long-range identifiers that the view did not show. */
  missing: string[];
  milliseconds: number;
}

/** What came of a session. */
export interface ReplayReport {
  calls: number;
  /** All calls and summaries, in units of one uncached input token. */
  cost: number;
  /** The part of the cost that is summaries. */
  summaryCost: number;
  /** Summary calls. */
  summaries: number;
  /** Input tokens of all calls by what they cost, summaries left out. */
  tokens: { read: number; written: number; plain: number };
  /** Calls whose view broke the prefix of the last one. */
  rewrites: number;
  /** Views that a strict provider refuses. */
  refused: number;
  /** Their reasons without places, and how often. */
  refusals: Record<string, number>;
  /** Calls over the window. */
  over: number;
  /** Tokens of the largest request. */
  largest: number;
  /** Over the calls from the first on whose view is not the whole transcript. */
  retention: Retention;
  /** Milliseconds of work: per call on average, and the most. */
  work: { mean: number; max: number };
}

/**
 * Messages at which the session called a model: each message of the model after one of the user or
 * a result. Where calls right before it are still unanswered, no request can have been made: logs of
 * parallel calls look like that.
 */
export function callsOf(transcript: readonly ChatMessage[]): number[] {
  const found: number[] = [];
  let open = new Set<unknown>();
  for (const [index, message] of transcript.entries()) {
    const { role, tool_calls, tool_call_id } = message as Wire;
    if (role === 'tool') {
      open.delete(tool_call_id);
      continue;
    }
    const before = transcript[index - 1];
    if (fromModel(message)) {
      const led = before?.role === 'system' || before?.role === 'developer';
      if (open.size === 0 && before && !led && !fromModel(before)) found.push(index);
      if (!fromModel(before)) open = new Set();
      for (const call of Array.isArray(tool_calls) ? tool_calls : []) open.add(call?.id);
    } else {
      open = new Set();
    }
  }
  return found;
}

/**
 * Sends a session through a policy. Nothing is sent anywhere: the answers are those of the
 * transcript. The output of the session's own calls is left out of the cost, for it is the same
 * whatever the policy.
 */
export async function replay(
  transcript: readonly ChatMessage[],
  policy: Policy,
  options: ReplayOptions,
): Promise<ReplayReport> {
  const { window, count, prices = OPENAI_PRICES, tools = [], onCall } = options;
  const clock = options.clock ?? ((_, call) => call * 20);
  const weigh = options.weigh ?? scale(count);
  const refuses = options.refusal ?? refusal;
  const cache = new PrefixCache(prices, count);
  const range = new LongRange(
    transcript,
    transcript.map((message) => weigh(message).tokens),
  );
  const report = blank();
  let usage: number | undefined;
  let last: readonly Segment[] = [];
  let cut = false;
  for (const [call, index] of callsOf(transcript).entries()) {
    const now = clock(index, call);
    const summaries: Charge[] = [];
    const asked: Turn['asked'] = (messages, answer, behind) => {
      const beside = behind ? [...tools, ...behind] : [];
      summaries.push(cache.charge(request(messages, beside, weigh), count(answer), now));
    };
    const sofar = transcript.slice(0, index);
    const start = performance.now();
    const view = await policy(sofar, { call, usage, asked });
    const milliseconds = view.milliseconds ?? performance.now() - start;
    const segments = request(view.messages, [...tools, ...(view.tools ?? [])], weigh);
    const tokens = sum(segments);
    cut ||=
      view.messages.length !== sofar.length ||
      view.messages.some((message, at) => weigh(message).text !== weigh(sofar[at]).text);
    const names = cut ? range.usedAt(index, window / 5) : [];
    const { missing, ...retention } = await retained(names, view.messages, view.recalls);
    const rewritten = last.some((segment, at) => segment.text !== segments[at]?.text);
    const charge = cache.charge(segments, 0, now);
    const refused = refuses(view.messages);
    const heard = { call, index, tokens, charge, summaries, rewritten, refused };
    const whole = { ...heard, retention, missing, milliseconds };
    add(report, whole, window);
    onCall?.(whole);
    usage = tokens;
    last = segments;
  }
  report.work.mean /= Math.max(report.calls, 1);
  return report;
}

function blank(): ReplayReport {
  return {
    calls: 0,
    cost: 0,
    summaryCost: 0,
    summaries: 0,
    tokens: { read: 0, written: 0, plain: 0 },
    rewrites: 0,
    refused: 0,
    refusals: {},
    over: 0,
    largest: 0,
    retention: { used: 0, visible: 0, recallable: 0, lost: 0 },
    work: { mean: 0, max: 0 },
  };
}

/** Adds a call to a report whose mean is still a sum. */
function add(report: ReplayReport, call: CallReport, window: number): void {
  report.calls += 1;
  const extra = call.summaries.reduce((cost, charge) => cost + charge.cost, 0);
  report.cost += call.charge.cost + extra;
  report.summaryCost += extra;
  report.summaries += call.summaries.length;
  for (const kind of ['read', 'written', 'plain'] as const) {
    report.tokens[kind] += call.charge[kind];
  }
  report.rewrites += call.rewritten ? 1 : 0;
  if (call.refused !== null) {
    const reason = call.refused.replace(/^messages\[\d+\]: /, '');
    report.refused += 1;
    report.refusals[reason] = (report.refusals[reason] ?? 0) + 1;
  }
  report.over += call.tokens > window ? 1 : 0;
  report.largest = Math.max(report.largest, call.tokens);
  for (const kind of ['used', 'visible', 'recallable', 'lost'] as const) {
    report.retention[kind] += call.retention[kind];
  }
  report.work.mean += call.milliseconds;
  report.work.max = Math.max(report.work.max, call.milliseconds);
}

type Weigh = (value: unknown) => { text: string; tokens: number };

function request(
  messages: readonly ChatMessage[],
  tools: readonly unknown[],
  weigh: Weigh,
): Segment[] {
  let lead = true;
  const segments = messages.map((message) => {
    lead &&= message.role === 'system' || message.role === 'developer';
    return { ...weigh(message), lead };
  });
  // Providers put the tools before the messages.
  if (tools.length > 0) segments.unshift({ ...weigh(tools), lead: true });
  return segments;
}

/**
 * Texts and sizes of messages and tools; each is counted once. The text is what the model reads, in
 * its order. Tokens are those of its pieces and of what stands around them: four for a message, as
 * OpenAI's cookbook counts, and eight for a call; role and ids are part of that.
 */
function scale(count: (text: string) => number): Weigh {
  const known = new WeakMap<object, { text: string; tokens: number }>();
  return (value) => {
    const object = typeof value === 'object' && value !== null ? value : {};
    const weight = known.get(object) ?? weightOf(object, count);
    known.set(object, weight);
    return weight;
  };
}

function weightOf(value: object, count: (text: string) => number) {
  const { role, content, reasoning_content, tool_calls, tool_call_id } = value as Wire;
  if (typeof role !== 'string') {
    const text = JSON.stringify(value);
    return { text, tokens: count(text) };
  }
  const texts = [role];
  let tokens = MESSAGE;
  const add = (piece: unknown) => {
    if (piece === undefined || piece === null) return;
    const text = typeof piece === 'string' ? piece : JSON.stringify(piece);
    texts.push(text);
    tokens += count(text);
  };
  if (tool_call_id !== undefined) texts.push(String(tool_call_id));
  add(reasoning_content);
  for (const part of Array.isArray(content) ? content : [content]) {
    if (/image|file|audio/.test(String(part?.type))) {
      texts.push(JSON.stringify(part));
      tokens += MEDIA;
    } else add(part?.text ?? part);
  }
  for (const call of Array.isArray(tool_calls) ? tool_calls : []) {
    texts.push(String(call?.id));
    tokens += CALL;
    add(call?.function?.name);
    add(call?.function?.arguments);
  }
  return { text: texts.join('\n'), tokens };
}

interface Wire {
  role?: unknown;
  content?: unknown;
  reasoning_content?: unknown;
  tool_call_id?: unknown;
  tool_calls?: unknown;
}

const MESSAGE = 4;
const CALL = 8;

/** Tokens of an image or a file, as tidemark takes it by default. */
const MEDIA = 1600;
