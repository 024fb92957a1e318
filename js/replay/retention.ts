// Whether a view still shows the identifiers that the session goes on to use.
import type { ChatMessage } from '../types.js';
import { deedsOf, fromModel, identifiers, mentions, wordsOf } from './identifiers.js';

/** Uses of long-range identifiers, by what the view had of them. */
export interface Retention {
  /** All of them: one per identifier and call. */
  used: number;
  /** The view showed it. */
  visible: number;
  /** The view did not show it, but a marker or reference in it leads there. */
  recallable: number;
  /** Neither. */
  lost: number;
}

/** The long-range identifiers of a transcript, call by call. */
export class LongRange {
  readonly #transcript: readonly ChatMessage[];
  readonly #tokens: readonly number[];
  readonly #words: string[] = [];

  /** @param tokens of each message */
  constructor(transcript: readonly ChatMessage[], tokens: readonly number[]) {
    this.#transcript = transcript;
    this.#tokens = tokens;
  }

  /**
   * Identifiers in the answer to a call that were last seen before the newest tokens.
   * @param at the message that answers, and after it the other messages of the same answer
   * @param recent tokens of the newest messages that do not count as long ago
   */
  usedAt(at: number, recent: number): string[] {
    let from = at;
    for (let sum = 0; from > 0; from--) {
      sum += this.#tokens[from - 1] ?? 0;
      if (sum > recent) break;
    }
    let deeds = '';
    for (let next = at; fromModel(this.#transcript[next]); next++) {
      deeds += `${deedsOf(this.#transcript[next] as ChatMessage)}\n`;
    }
    const seen = (name: string, first: number, end: number) => {
      for (let index = end - 1; index >= first; index--) {
        if (mentions(this.#wordsAt(index), name)) return true;
      }
      return false;
    };
    return [...identifiers(deeds)].filter((name) => !seen(name, from, at) && seen(name, 0, from));
  }

  #wordsAt(index: number): string {
    const words = this.#words[index] ?? wordsOf(this.#transcript[index] as ChatMessage);
    this.#words[index] = words;
    return words;
  }
}

/** Sorts identifiers by what a view has of them. */
export async function retained(
  names: readonly string[],
  view: readonly ChatMessage[],
  recalls?: (identifier: string) => boolean | Promise<boolean>,
): Promise<Retention & { missing: string[] }> {
  const text = names.length > 0 ? view.map(wordsOf).join('\n') : '';
  const missing = names.filter((name) => !mentions(text, name));
  let recallable = 0;
  for (const name of missing) if (await recalls?.(name)) recallable += 1;
  const visible = names.length - missing.length;
  const lost = missing.length - recallable;
  return { used: names.length, visible, recallable, lost, missing };
}
