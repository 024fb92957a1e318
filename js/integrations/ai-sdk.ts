import type { Compactor } from '../compactor.js';
import { TidemarkError } from '../errors.js';

/** What is the same for every call of a conversation. */
export interface AiSdkOptions {
  /** Definitions of the tools that go with each call, where they are not known otherwise. */
  tools?: readonly unknown[] | undefined;
  /** What a summary should give the most room to. */
  focus?: string | undefined;
}

/** What `prepareStep` is given, by versions 5 to 7. */
export interface PreparedStep<M> {
  messages: M[];
  steps?: readonly Measured[] | undefined;
}

/** What a model reported with an answer. */
interface Measured {
  usage?: unknown;
  providerMetadata?: unknown;
}

/**
 * A `prepareStep` for `generateText`, `streamText` and agents: each step sends the compacted view.
 *
 * ```js
 * const compactor = new Compactor({ window: 128_000, format: 'ai-sdk' });
 * await generateText({ model, messages, tools, prepareStep: prepareStep(compactor) });
 * ```
 */
export function prepareStep<M extends object>(
  compactor: Compactor<M>,
  options: AiSdkOptions = {},
): (step: PreparedStep<M>) => Promise<{ messages: M[] }> {
  let transcript: M[] = [];
  let view: M[] = [];
  return async ({ messages, steps }) => {
    // From version 7 on a step goes on from the view that the step before it was given.
    const goesOn = view.length <= messages.length && view.every((own, at) => own === messages[at]);
    transcript = goesOn ? [...transcript, ...messages.slice(view.length)] : messages;
    const usage = steps?.length ? inputTokens(steps.at(-1)) : undefined;
    const result = await compactor.compact(transcript, { ...options, usage });
    view = result.messages;
    return { messages: view };
  };
}

/** Parameters of a call of a language model, of any specification version. */
interface CallParams {
  prompt: object[];
  tools?: readonly unknown[] | undefined;
  abortSignal?: AbortSignal | undefined;
}

interface Streamed {
  stream: ReadableStream<unknown>;
}

/**
 * A language model middleware for `wrapLanguageModel`: every call sends the compacted view, and a
 * call that the provider refuses as too long is sent once more, smaller.
 *
 * Prompts hold no name of their conversation: give the compactor of the one that the model is
 * wrapped for, or a function that finds it, such as by a value in `params.providerOptions`.
 *
 * ```js
 * const model = wrapLanguageModel({ model: openai('gpt-5'), middleware: middleware(compactor) });
 * ```
 */
export function middleware<M extends object>(
  compactor: Compactor<M> | ((params: CallParams) => Compactor<M>),
  options: AiSdkOptions = {},
) {
  const usages = new WeakMap<Compactor<M>, number | undefined>();
  /** What each call was before it was compacted. */
  const calls = new WeakMap<object, { compactor: Compactor<M>; prompt: M[] }>();

  async function transformParams<P extends CallParams>({ params }: { params: P }): Promise<P> {
    const own = typeof compactor === 'function' ? compactor(params) : compactor;
    const prompt = params.prompt as M[];
    const { tools = options.tools, abortSignal: signal } = params;
    const usage = usages.get(own);
    usages.delete(own);
    const { messages } = await own.compact(prompt, { ...options, tools, usage, signal });
    requirePrompt(messages);
    const compacted = { ...params, prompt: messages };
    calls.set(compacted, { compactor: own, prompt });
    return compacted;
  }

  /** Sends a call; where it was too long for the provider, a smaller one in its place. */
  async function sent<P extends CallParams, R>(
    params: P,
    send: () => PromiseLike<R>,
    again: (params: P) => PromiseLike<R>,
  ): Promise<R> {
    try {
      return await send();
    } catch (overflow) {
      const call = calls.get(params);
      if (!call) throw overflow;
      const { tools = options.tools, abortSignal: signal } = params;
      const request = { ...options, tools, overflow, signal };
      const retry = await call.compactor.compact(call.prompt, request);
      if (!retry.overflow || !retry.compacted || !retry.fits) throw overflow;
      return again({ ...params, prompt: retry.messages });
    }
  }

  function measure(params: object, answer: unknown): void {
    const call = calls.get(params);
    if (call) usages.set(call.compactor, inputTokens(Object(answer)));
  }

  return {
    specificationVersion: 'v3' as const,
    transformParams,

    async wrapGenerate<P extends CallParams, R extends object>(call: {
      doGenerate: () => PromiseLike<R>;
      params: P;
      model: { doGenerate(params: P): PromiseLike<R> };
    }): Promise<R> {
      const { params, doGenerate, model } = call;
      const answer = await sent(params, doGenerate, (smaller) => model.doGenerate(smaller));
      measure(params, answer);
      return answer;
    },

    async wrapStream<P extends CallParams, R extends Streamed>(call: {
      doStream: () => PromiseLike<R>;
      params: P;
      model: { doStream(params: P): PromiseLike<R> };
    }): Promise<R> {
      const { params, doStream, model } = call;
      const answer = await sent(params, doStream, (smaller) => model.doStream(smaller));
      const watch = new TransformStream<unknown, unknown>({
        transform(part, controller) {
          if ((part as { type?: unknown }).type === 'finish') measure(params, part);
          controller.enqueue(part);
        },
      });
      return { ...answer, stream: answer.stream.pipeThrough(watch) };
    },
  };
}

/**
 * The recall tool as a member of `tools`, or nothing while all is in the view. `jsonSchema` is
 * that of the package `ai`.
 *
 * ```js
 * await generateText({ model, messages, tools: { ...tools, ...recallTools(compactor, jsonSchema) } });
 * ```
 */
export function recallTools<M extends object, S>(
  compactor: Compactor<M>,
  jsonSchema: (schema: { type: 'object' }) => S,
): Record<
  string,
  { description: string; inputSchema: S; execute: (args: object) => Promise<string> }
> {
  const tool = compactor.recallSchema();
  if (!tool) return {};
  return {
    [tool.name]: {
      description: tool.description,
      inputSchema: jsonSchema(tool.parameters as { type: 'object' }),
      execute: (args) => compactor.recall(args),
    },
  };
}

/** A prompt of plain texts does not give its format away; in another one it would be no prompt. */
function requirePrompt(messages: readonly object[]): void {
  const strange = (message: { role?: unknown; content?: unknown }) => {
    return message.role === 'user' && typeof message.content === 'string';
  };
  if (!messages.some(strange)) return;
  const what = "options.format: expected 'ai-sdk' of a compactor for language models";
  throw new TidemarkError('invalid_option', what, 'options.format');
}

/** All tokens of a prompt, as the specification versions report them. */
function inputTokens(measured: Measured | undefined): number | undefined {
  const usage = Object(measured?.usage);
  const tokens = Object(usage.inputTokens).total ?? usage.inputTokens;
  // Version 5 reports of Anthropic's only those tokens that came from no cache.
  const raw = Object(Object(Object(measured?.providerMetadata).anthropic).usage);
  if (typeof raw.input_tokens === 'number') {
    const cached = [raw.cache_read_input_tokens, raw.cache_creation_input_tokens];
    const all = cached.reduce((sum, part) => sum + (Number(part) || 0), raw.input_tokens);
    return Math.max(all, typeof tokens === 'number' ? tokens : 0);
  }
  return typeof tokens === 'number' ? tokens : undefined;
}
