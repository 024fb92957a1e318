// Summaries by a model, over the HTTP API of its provider.
import type { Summarizer } from '../index.js';
import { EXIT, Failure } from './failure.js';

/** Milliseconds for one answer. */
const PATIENCE = 120_000;

/** Requests for one answer. */
const TRIES = 3;

interface Provider {
  key: string;
  /** The environment variable that names another place. */
  base: string;
  url: string;
  path: string;
  headers(key: string): Record<string, string>;
  body(model: string, system: string, prompt: string, maxTokens: number): unknown;
  /** The text of an answer. */
  text(answer: Answer): string | undefined;
}

interface Answer {
  choices?: { message?: { content?: string } }[];
  content?: { type?: string; text?: string }[];
  error?: { message?: string };
}

const PROVIDERS: Record<string, Provider> = {
  openai: {
    key: 'OPENAI_API_KEY',
    base: 'OPENAI_BASE_URL',
    url: 'https://api.openai.com/v1',
    path: '/chat/completions',
    headers: (key) => ({ authorization: `Bearer ${key}` }),
    body: (model, system, prompt, maxTokens) => ({
      model,
      max_completion_tokens: maxTokens,
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: prompt },
      ],
    }),
    text: (answer) => answer.choices?.[0]?.message?.content,
  },
  anthropic: {
    key: 'ANTHROPIC_API_KEY',
    base: 'ANTHROPIC_BASE_URL',
    url: 'https://api.anthropic.com',
    path: '/v1/messages',
    headers: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
    body: (model, system, prompt, maxTokens) => ({
      model,
      max_tokens: maxTokens,
      system,
      messages: [{ role: 'user', content: prompt }],
    }),
    text: ({ content }) => content?.map((block) => block.text ?? '').join(''),
  },
};

/** What a summarizer was asked so far. */
export interface Meter {
  calls: number;
}

/**
 * The summarizer that `local`, `openai:MODEL` or `anthropic:MODEL` names; none for `local`, which
 * the engine has itself.
 */
export function summarizerOf(
  name: string | undefined,
  baseUrl: string | undefined,
  meter: Meter = { calls: 0 },
): Summarizer | undefined {
  if (name === undefined || name === 'local') return undefined;
  const [, kind = '', model = ''] = /^(\w+):(.+)$/.exec(name) ?? [];
  const provider = PROVIDERS[kind];
  if (!provider) {
    throw new Failure(
      EXIT.usage,
      `--summarizer: ${name}: unknown`,
      'known are local, openai:MODEL and anthropic:MODEL',
    );
  }
  const key = process.env[provider.key];
  if (!key) {
    throw new Failure(
      EXIT.usage,
      `--summarizer ${name} needs ${provider.key}`,
      'set it, or use --summarizer local',
    );
  }
  const base = (baseUrl ?? (process.env[provider.base] || provider.url)).replace(/\/+$/, '');
  if (!/^https?:\/\//.test(base)) {
    throw new Failure(EXIT.usage, `--base-url: ${base}: expected http:// or https://`);
  }
  return async ({ system, prompt, maxTokens }, { signal }) => {
    meter.calls += 1;
    const request = {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...provider.headers(key) },
      body: JSON.stringify(provider.body(model, system, prompt, maxTokens)),
    };
    return provider.text(await ask(base + provider.path, request, signal));
  };
}

/** Whether a model that writes summaries can be reached, for `status`. */
export function keyOf(name: string | undefined): { variable: string; set: boolean } | undefined {
  const provider = PROVIDERS[name?.split(':')[0] ?? ''];
  return provider && { variable: provider.key, set: Boolean(process.env[provider.key]) };
}

/** Asks again where the provider is busy, after the time that it names. */
async function ask(
  url: string,
  request: RequestInit,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  for (let tried = 1; ; tried++) {
    const limit = AbortSignal.timeout(PATIENCE);
    const both = signal ? AbortSignal.any([signal, limit]) : limit;
    const response = await fetch(url, { ...request, signal: both });
    const text = await response.text();
    const answer = readAnswer(text);
    if (response.ok && answer) return answer;
    const busy = response.status === 429 || response.status >= 500;
    if (!busy || tried === TRIES) {
      const why = answer?.error?.message ?? text.slice(0, 200);
      throw new Error(`HTTP ${response.status} from ${new URL(url).host}: ${why}`);
    }
    const asked = Number(response.headers.get('retry-after'));
    const seconds = asked > 0 ? Math.min(asked, 60) : tried;
    await pause(seconds * 1000, signal);
  }
}

function readAnswer(text: string): Answer | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}
