// The page with charts: one file that needs no other.
import { readFile } from 'node:fs/promises';
import type { Replayed } from './replay.js';

/** What the page's script gets. */
export interface PageData {
  title: string;
  window: number;
  usable: number;
  currency: string;
  prices: string;
  timed: boolean;
  messages: number;
  ways: PageWay[];
}

export interface PageWay {
  policy: string;
  cost: number;
  summaryCost: number;
  rewrites: number;
  refused: number;
  over: number;
  largest: number;
  retention: { used: number; visible: number; recallable: number; lost: number };
  /** By call. */
  index: number[];
  tokens: number[];
  read: number[];
  written: number[];
  plain: number[];
  /** In the currency, summaries included. */
  spent: number[];
  rewritten: boolean[];
}

/** The page of a replay; its template lies beside the program. */
export async function pageOf({ ways, prices, ...found }: Replayed): Promise<string> {
  const template = await readFile(new URL('./report.html', import.meta.url), 'utf8');
  const worth = (units: number) => (units * prices.million) / 1e6;
  const data: PageData = {
    title: found.title,
    window: found.window,
    usable: found.usable,
    currency: prices.currency,
    prices: prices.name,
    timed: found.timed,
    messages: found.messages,
    ways: ways.map(({ policy, cost, calls, report }) => ({
      policy,
      cost,
      summaryCost: worth(report.summaryCost),
      rewrites: report.rewrites,
      refused: report.refused,
      over: report.over,
      largest: report.largest,
      retention: report.retention,
      index: calls.map(({ index }) => index),
      tokens: calls.map(({ tokens }) => tokens),
      read: calls.map(({ charge }) => charge.read),
      written: calls.map(({ charge }) => charge.written),
      plain: calls.map(({ charge }) => charge.plain),
      spent: calls.map(({ charge, summaries }) =>
        worth(summaries.reduce((sum, one) => sum + one.cost, charge.cost)),
      ),
      rewritten: calls.map(({ rewritten }) => rewritten),
    })),
  };
  // No text of a session ends the script that holds it.
  const json = JSON.stringify(data).replace(/[<\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  const title = found.title.replace(/[<>&"]/g, (character) => `&#${character.charCodeAt(0)};`);
  // Functions: a dollar in the data is no pattern.
  return template.replace('{{title}}', () => title).replace('{{data}}', () => json);
}
