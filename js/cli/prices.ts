// What tokens cost, from a table in a file or one of the examples.
import { readFile } from 'node:fs/promises';
import { ANTHROPIC_PRICES, type CachePrices, OPENAI_PRICES } from '../replay/index.js';
import { EXIT, Failure, reason } from './failure.js';
import { isObject } from './input.js';

/** Prices, and what one input token is worth. */
export interface Prices {
  name: string;
  currency: string;
  /** Of a million input tokens that no cache has a part in. */
  million: number;
  /** In units of such a token. */
  cache: CachePrices;
}

/** Examples; providers change their prices. */
const EXAMPLES: Record<string, Prices> = {
  openai: { name: 'openai (example: GPT-5)', currency: 'USD', million: 1.25, cache: OPENAI_PRICES },
  anthropic: {
    name: 'anthropic (example: Sonnet 4.5)',
    currency: 'USD',
    million: 3,
    cache: ANTHROPIC_PRICES,
  },
};

const NUMBERS = [
  'input',
  'read',
  'write',
  'output',
  'minimum',
  'ttl',
  'step',
  'breakpoints',
  'lookback',
];
const KNOWN = ['name', 'currency', 'cache', ...NUMBERS];

/** The prices that `openai`, `anthropic` or the name of a file stand for. */
export async function pricesOf(name: string): Promise<Prices> {
  const example = EXAMPLES[name];
  if (example) return example;
  let table: unknown;
  try {
    table = JSON.parse(await readFile(name, 'utf8'));
  } catch (error) {
    const hint = `--prices takes openai, anthropic, or a file such as { "input": 3, "read": 0.3, "write": 3.75, "output": 15 }`;
    throw new Failure(EXIT.input, `${name}: ${reason(error)}`, hint);
  }
  const wrong = (what: string) => new Failure(EXIT.input, `${name}: ${what}`);
  if (!isObject(table)) throw wrong('expected an object');
  for (const [member, value] of Object.entries(table)) {
    if (!KNOWN.includes(member)) throw wrong(`${member}: unknown; known are ${KNOWN.join(', ')}`);
    const number = typeof value === 'number' && Number.isFinite(value) && value >= 0;
    if (NUMBERS.includes(member) && !number) throw wrong(`${member}: expected a number from 0 up`);
  }
  const { input, cache = 'automatic' } = table;
  if (typeof input !== 'number' || input === 0)
    throw wrong('input: expected the price of a million tokens');
  if (cache !== 'automatic' && cache !== 'breakpoints' && cache !== 'none') {
    throw wrong('cache: expected automatic, breakpoints or none');
  }
  const base = cache === 'breakpoints' ? ANTHROPIC_PRICES : OPENAI_PRICES;
  const number = (member: string, otherwise: number) => {
    const value = table[member];
    return typeof value === 'number' ? value : otherwise;
  };
  const unit = (member: 'read' | 'write' | 'output') => {
    const value = table[member];
    return typeof value === 'number' ? value / input : base[member];
  };
  const { rule } = base;
  return {
    name: typeof table.name === 'string' ? table.name : name,
    currency: typeof table.currency === 'string' ? table.currency : 'USD',
    million: input,
    cache: {
      input: 1,
      read: unit('read'),
      write: unit('write'),
      output: unit('output'),
      minimum: cache === 'none' ? Number.MAX_SAFE_INTEGER : number('minimum', base.minimum),
      ttl: number('ttl', base.ttl),
      rule:
        rule.kind === 'breakpoints'
          ? {
              ...rule,
              most: number('breakpoints', rule.most),
              lookback: number('lookback', rule.lookback),
            }
          : { kind: 'automatic', step: Math.max(1, number('step', rule.step)) },
    },
  };
}

/** An amount with its currency: $0.0123, 12.30 EUR. */
export function money(amount: number, currency: string): string {
  const digits = amount !== 0 && amount < 0.995 ? 4 : 2;
  const number = amount.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return currency === 'USD' ? `$${number}` : `${number} ${currency}`;
}
