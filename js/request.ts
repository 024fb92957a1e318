import type { CompactorOptions, CompactRequest, UsageReport } from './compactor.js';
import { requireObject, TidemarkError } from './errors.js';
import type { PlanRequest } from './types.js';

type HostOptions = Pick<
  CompactorOptions<never>,
  'summarizer' | 'store' | 'onEvent' | 'beforeBurst' | 'flush'
>;

/** @internal Refuses a summarizer, store or listener that is none. */
export function checkHost(options: HostOptions): void {
  const { summarizer, store, onEvent, beforeBurst, flush } = options;
  requireFunction('beforeBurst', beforeBurst);
  requireFunction('flush', flush);
  requireFunction('summarizer', summarizer);
  requireFunction('onEvent', onEvent);
  if (store !== undefined) {
    requireFunction('store.put', store?.put ?? null);
    requireFunction('store.get', store?.get ?? null);
  }
}

function requireFunction(name: string, value: unknown): void {
  if (value === undefined || typeof value === 'function') return;
  throw wrong(`options.${name}`, 'expected a function');
}

/** @internal A delay that timers can keep, or Infinity. */
export function milliseconds(name: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  const timed = typeof value === 'number' && value >= 1 && value < 2 ** 31;
  if (timed || value === Number.POSITIVE_INFINITY) return value;
  throw wrong(`options.${name}`, 'expected milliseconds from 1 up, or Infinity');
}

const SHARED = [
  'usage',
  'overflow',
  'force',
  'focus',
  'fresh',
  'dryRun',
  'serverHistory',
  'signal',
];
/** @internal Members of a request. */
export const REQUEST = ['tools', 'system', ...SHARED];
/** @internal Those of one over a body. */
export const BODY_REQUEST = ['path', ...SHARED];

/** @internal Refuses what is no request. */
export function checkRequest(request: CompactRequest, known: readonly string[]): void {
  requireObject(request, 'request', '{ tools, usage }');
  for (const [name, value] of Object.entries(request)) {
    if (value === undefined || known.includes(name)) continue;
    throw wrong(`request.${name}`, `unknown; known are ${known.join(', ')}`);
  }
  const { tools } = request;
  if (tools !== undefined && (typeof tools !== 'object' || tools === null)) {
    throw wrong('request.tools', 'expected an array, or an object of tools by name');
  }
}

/** @internal An option that is not what it should be. */
export function wrong(path: string, what: string): TidemarkError {
  return new TidemarkError('invalid_option', `${path}: ${what}`, path);
}

/** @internal What the engine is asked. */
export function planRequest(request: CompactRequest): PlanRequest {
  const { usage, overflow, force, focus, fresh, dryRun, serverHistory } = request;
  const tokens = inputTokens(usage);
  return {
    ...(tokens !== undefined && { usage: { inputTokens: tokens } }),
    ...(overflow !== undefined && overflow !== null && { overflow: describe(overflow) }),
    ...(force !== undefined && { force }),
    ...(focus !== undefined && { focus }),
    ...(fresh !== undefined && { fresh }),
    ...(dryRun !== undefined && { dryRun }),
    ...(serverHistory !== undefined && { serverHistory }),
  };
}

/** All tokens of the prompt, where the report has them. Anthropic reports cached ones apart. */
function inputTokens(usage: UsageReport | null | undefined): number | undefined {
  if (usage === undefined || usage === null || typeof usage === 'number') return usage ?? undefined;
  const report = Object(usage) as Record<string, unknown>;
  const { inputTokens, prompt_tokens, promptTokenCount, input_tokens } = report;
  const { cache_read_input_tokens, cache_creation_input_tokens } = report;
  if (typeof inputTokens === 'number') return inputTokens;
  if (typeof prompt_tokens === 'number') return prompt_tokens;
  if (typeof promptTokenCount === 'number') return promptTokenCount;
  if (typeof input_tokens === 'number') {
    const cached = [cache_read_input_tokens, cache_creation_input_tokens];
    return cached.reduce<number>((sum, tokens) => sum + (Number(tokens) || 0), input_tokens);
  }
  // Some clients name it and leave it undefined where the provider reported nothing.
  if ('inputTokens' in report && inputTokens === undefined) return undefined;
  throw wrong(
    'request.usage',
    'expected a number, or an object with prompt_tokens, input_tokens or inputTokens (pass response.usage)',
  );
}

/** Status and text of whatever a client library throws, however it wraps the provider's answer. */
function describe(error: unknown): { status?: number; body: string } {
  if (typeof error !== 'object' || error === null) return { body: String(error) };
  const texts: string[] = [];
  let status: number | undefined;
  const look = (holder: object, depth: number) => {
    status ??= [member(holder, 'status'), member(holder, 'statusCode')].find(
      (code): code is number => Number.isInteger(code) && (code as number) >= 0,
    );
    for (const name of ['error', 'responseBody', 'data', 'body', 'message', 'code']) {
      const value = member(holder, name);
      if (value !== undefined) texts.push(words(value));
    }
    for (const name of ['response', 'cause', 'lastError']) {
      const inner = member(holder, name);
      if (typeof inner === 'object' && inner !== null && depth > 0) look(inner, depth - 1);
    }
  };
  look(error, 2);
  const body = texts.filter((text) => text !== '').join('\n');
  return { ...(status !== undefined && { status }), body: body === '' ? words(error) : body };
}

/** A member of a foreign object, whose getters may throw. */
function member(holder: object, name: string): unknown {
  try {
    return (holder as Record<string, unknown>)[name];
  } catch {
    return undefined;
  }
}

function words(value: unknown): string {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '';
  }
}
