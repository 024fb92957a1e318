// What a request costs where the provider keeps prompt prefixes.

/** What a provider charges, per token, and when it finds a prefix again. */
export interface CachePrices {
  /** Input that is neither read from the cache nor written to it. The unit of all costs is 1. */
  input: number;
  /** Input read from the cache. */
  read: number;
  /** Input written to the cache. */
  write: number;
  /** Output. */
  output: number;
  /** Tokens below which nothing is cached. */
  minimum: number;
  /** Seconds for which a prefix is kept after it was last used. */
  ttl: number;
  /** How prefixes are found. */
  rule: CacheRule;
}

/**
 * - `automatic`: any prefix of an earlier request, in whole steps of so many tokens
 * - `breakpoints`: only prefixes that end at a breakpoint of an earlier request, looked for at each
 *   breakpoint and at so many messages before it. Breakpoints stand after the tools and leading
 *   system messages and after the newest messages, `most` in all
 */
export type CacheRule =
  | { kind: 'automatic'; step: number }
  | { kind: 'breakpoints'; most: number; lookback: number };

/**
 * OpenAI's rules, as its guide on prompt caching states them: prompts of 1,024 tokens and more,
 * in steps of 128, kept for 5 to 10 minutes, writing is free. Prices as for GPT-5: a cached token
 * costs a tenth, output eight times as much as input.
 */
export const OPENAI_PRICES: CachePrices = {
  input: 1,
  read: 0.1,
  write: 1,
  output: 8,
  minimum: 1024,
  ttl: 300,
  rule: { kind: 'automatic', step: 128 },
};

/**
 * Anthropic's rules, as its documentation of prompt caching states them: four breakpoints, 20
 * blocks of look-back, 1,024 tokens at least, kept for 5 minutes; writing costs a quarter more,
 * reading a tenth, output five times as much as input.
 */
export const ANTHROPIC_PRICES: CachePrices = {
  input: 1,
  read: 0.1,
  write: 1.25,
  output: 5,
  minimum: 1024,
  ttl: 300,
  rule: { kind: 'breakpoints', most: 4, lookback: 20 },
};

/** A piece of a request: the tools, or one message. */
export interface Segment {
  /** The bytes that must be the same, as text. */
  text: string;
  /** Tokens of it. */
  tokens: number;
  /** It belongs to the lead: the tools or a leading system message. */
  lead: boolean;
}

/** The input tokens of one request by what they cost, and the cost of the request. */
export interface Charge {
  /** Tokens read from the cache. */
  read: number;
  /** Tokens written to the cache. */
  written: number;
  /** Tokens that the cache had no part in. */
  plain: number;
  /** Tokens of the answer. */
  output: number;
  /** All of that in units of one input token. */
  cost: number;
}

interface Entry {
  segments: readonly Segment[];
  /** Second of the last use. */
  used: number;
}

/** A provider's cache of prompt prefixes, and what it makes requests cost. */
export class PrefixCache {
  readonly #prices: CachePrices;
  readonly #count: (text: string) => number;
  /** Earlier requests, oldest first. */
  #entries: Entry[] = [];
  /** Prefixes that end at a breakpoint, and the second of their last use. */
  readonly #marks = new Map<string, number>();
  /** Numbers of segment texts, so that a prefix has a short name. */
  readonly #names = new Map<string, number>();

  /** @param count tokens of a text; for segments that are the same in part only */
  constructor(prices: CachePrices, count: (text: string) => number) {
    this.#prices = prices;
    this.#count = count;
  }

  /**
   * Prices a request and keeps its prefix.
   * @param output tokens of the answer
   * @param now seconds since any moment; never less than at the last call
   */
  charge(segments: readonly Segment[], output: number, now: number): Charge {
    const { rule, minimum, input, read: readPrice, write, output: outputPrice } = this.#prices;
    const all = sum(segments);
    let { read, kept } =
      rule.kind === 'automatic'
        ? this.#automatic(segments, rule.step, now)
        : this.#breakpoints(segments, rule, now);
    if (read < minimum) read = 0;
    if (kept < minimum) kept = 0;
    const written = Math.max(kept - read, 0);
    const plain = all - read - written;
    const cost = read * readPrice + written * write + plain * input + output * outputPrice;
    return { read, written, plain, output, cost };
  }

  #automatic(segments: readonly Segment[], step: number, now: number) {
    this.#entries = this.#entries.filter((entry) => now - entry.used <= this.#prices.ttl);
    let best = 0;
    for (const entry of this.#entries) {
      let at = 0;
      let tokens = 0;
      while (at < segments.length && entry.segments[at]?.text === segments[at]?.text) {
        tokens += segments[at]?.tokens ?? 0;
        at += 1;
      }
      const mine = segments[at];
      const other = entry.segments[at];
      if (mine && other) {
        const same = commonPrefix(mine.text, other.text);
        tokens += Math.min(this.#count(mine.text.slice(0, same)), mine.tokens);
      }
      best = Math.max(best, tokens);
    }
    this.#entries.push({ segments, used: now });
    const whole = (tokens: number) => Math.floor(tokens / step) * step;
    return { read: whole(best), kept: whole(sum(segments)) };
  }

  #breakpoints(
    segments: readonly Segment[],
    { most, lookback }: { most: number; lookback: number },
    now: number,
  ) {
    const lead = segments.filter((segment) => segment.lead).length;
    const ends = new Set<number>(lead > 0 ? [lead] : []);
    for (let end = segments.length; end > lead && ends.size < most; end--) ends.add(end);
    // The name and size of every prefix, by the number of its segments.
    const names = [''];
    const sizes = [0];
    for (const { text, tokens } of segments) {
      const name = this.#names.get(text) ?? this.#names.size;
      this.#names.set(text, name);
      names.push(`${names.at(-1)}.${name}`);
      sizes.push((sizes.at(-1) ?? 0) + tokens);
    }
    let read = 0;
    for (const end of ends) {
      for (let at = end; at > 0 && at > end - lookback; at--) {
        const used = this.#marks.get(names[at] ?? '');
        if (used === undefined || now - used > this.#prices.ttl) continue;
        read = Math.max(read, sizes[at] ?? 0);
        this.#marks.set(names[at] ?? '', now);
        break;
      }
    }
    for (const end of ends) {
      if ((sizes[end] ?? 0) >= this.#prices.minimum) this.#marks.set(names[end] ?? '', now);
    }
    return { read, kept: sizes[Math.max(...ends, 0)] ?? 0 };
  }
}

/** Tokens of a request. */
export function sum(segments: readonly Segment[]): number {
  return segments.reduce((tokens, segment) => tokens + segment.tokens, 0);
}

function commonPrefix(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  return at;
}
