// Every policy of the comparison, by name: what it is, and how one for a session is made.
// All of them get the same window, summarizer and usage; what else they do is their default, or
// what their documentation shows where there is none.
import { RemoveMessage, trimMessages } from '@langchain/core/messages';
import { TokenLimiterProcessor } from '@mastra/core/processors';
import { createCompactFunction, isCompactionMessage } from 'agents/sessions';
import { pruneMessages } from 'ai';
import { ClearToolUsesEdit, contextEditingMiddleware, summarizationMiddleware } from 'langchain';
import { compactor, mentions, whole } from '../../pkg/replay/index.js';
import { pythonPeer } from './python_peer.mjs';
import { summarize } from './summarizer.mjs';
import { fromAiSdk, fromLangChain, fromSession, toAiSdk, toLangChain, toSession } from './wire.mjs';

/** Where packages that name no trigger of their own start: this share of the window. */
const TRIGGER = 0.8;

/** A model for LangChain whose answers are the summarizer's. */
function summarizerModel(asked) {
  return {
    async invoke(prompt) {
      const text = summarize(prompt);
      asked([{ role: 'user', content: prompt }], text);
      return { content: text };
    },
  };
}

const isLead = (message) => message.role === 'system' || message.role === 'developer';

/** The messages after the leading system messages, for packages that take those apart. */
function body(messages) {
  const start = messages.findIndex((message) => !isLead(message));
  return { lead: messages.slice(0, start), rest: messages.slice(start) };
}

function langchainSummarization(window) {
  const trigger = { tokens: Math.floor(window * TRIGGER) };
  let asked = () => {};
  const model = summarizerModel((...call) => asked(...call));
  const middleware = summarizationMiddleware({ model, trigger });
  let state = [];
  let known = 0;
  return async (messages, turn) => {
    asked = turn.asked;
    const { lead, rest } = body(messages);
    state = [...state, ...toLangChain(rest.slice(known))];
    known = rest.length;
    const change = await middleware.beforeModel({ messages: state }, { context: {} });
    if (change) state = change.messages.filter((message) => !(message instanceof RemoveMessage));
    return { messages: [...lead, ...fromLangChain(state)] };
  };
}

function langchainClearing(window) {
  const trigger = { tokens: Math.floor(window * TRIGGER) };
  const middleware = contextEditingMiddleware({ edits: [new ClearToolUsesEdit({ trigger })] });
  return async (messages) => {
    const { lead, rest } = body(messages);
    const request = { messages: toLangChain(rest) };
    let view = [];
    await middleware.wrapModelCall(request, async (edited) => {
      view = edited.messages;
    });
    return { messages: [...lead, ...fromLangChain(view)] };
  };
}

function langchainTrim(window, count) {
  const sizes = new WeakMap();
  const size = (message) => {
    if (!sizes.has(message)) {
      const { content, tool_calls: calls = [] } = message;
      sizes.set(
        message,
        4 + count(content) + (calls.length > 0 ? count(JSON.stringify(calls)) : 0),
      );
    }
    return sizes.get(message);
  };
  // The same objects for every call, so that each is counted once.
  const all = [];
  return async (messages) => {
    all.push(...toLangChain(messages.slice(all.length)));
    const view = await trimMessages(all, {
      maxTokens: Math.floor(window * TRIGGER),
      strategy: 'last',
      tokenCounter: (list) => list.reduce((sum, message) => sum + size(message), 0),
      startOn: ['human', 'ai'],
      endOn: ['human', 'tool'],
      includeSystem: true,
    });
    return { messages: fromLangChain(view) };
  };
}

function aiSdkPrune(window) {
  return (messages) => {
    const all = toAiSdk(messages);
    if (JSON.stringify(all).length / 4 < window * TRIGGER) return { messages: fromAiSdk(all) };
    const view = pruneMessages({
      messages: all,
      reasoning: 'before-last-message',
      toolCalls: 'before-last-20-messages',
      emptyMessages: 'remove',
    });
    return { messages: fromAiSdk(view) };
  };
}

function mastraLimiter(window) {
  const processor = new TokenLimiterProcessor({ limit: Math.floor(window * TRIGGER) });
  return async (messages) => {
    const { prompt } = (await processor.processLLMRequest({ prompt: toAiSdk(messages) })) ?? {};
    return { messages: fromAiSdk(prompt ?? toAiSdk(messages)) };
  };
}

function cloudflare(window) {
  let asked = () => {};
  const compact = createCompactFunction({
    keepRecentTokens: Math.min(20_000, Math.floor(window * 0.2)),
    summarize: async (prompt) => {
      const text = summarize(prompt);
      asked([{ role: 'user', content: prompt }], text);
      return text;
    },
  });
  let overlay = null;
  const apply = (session) => {
    if (overlay === null) return session;
    const at = (id) => session.findIndex((message) => message.id === id);
    const parts = [{ type: 'text', text: overlay.summary }];
    const summary = { id: 'compaction_1', role: 'assistant', parts };
    const [from, to] = [at(overlay.fromMessageId), at(overlay.toMessageId)];
    return [...session.slice(0, from), summary, ...session.slice(to + 1)];
  };
  return async (messages, turn) => {
    asked = turn.asked;
    const { lead, rest } = body(messages);
    const session = toSession(rest);
    let view = apply(session);
    if (JSON.stringify(view).length / 4 > window * TRIGGER) {
      const result = await compact(view);
      if (result) {
        // A later compaction stands for what the earlier one stood for, too.
        const first = view.findIndex((message) => message.id === result.fromMessageId);
        const before = view.slice(0, first).some(isCompactionMessage);
        overlay = before ? { ...result, fromMessageId: overlay.fromMessageId } : result;
        view = apply(session);
      }
    }
    return { messages: [...lead, ...fromSession(view)] };
  };
}

/** Markers of lovia name the call, or the content of its result: recall reads the transcript. */
function loviaRecalls(identifier, view, transcript) {
  const marked = view.filter((message) => {
    return message.role === 'tool' && message.content.includes('recall_tool_result(');
  });
  return marked.some(({ tool_call_id: id }) => {
    return transcript.some((message) => {
      return message.tool_call_id === id && mentions(String(message.content), identifier);
    });
  });
}

/** A policy of this process: nothing to close. */
const here = (make) => (window, context) => ({ policy: make(window, context.count), close() {} });

/** tidemark's presets by what they are for; those that ask the model for summaries do so here. */
const PRESETS = [
  'default',
  'late',
  'two-tier',
  'smart',
  'conversation',
  'prune',
  'summarize',
  'sliding',
  'truncate',
];
const WITH_MODEL = ['default', 'late', 'llm-summarize'];

/** What the summarizer of a model reads of a request that goes behind the view. */
function live({ messages = [], prompt }) {
  const read = (message) => {
    const calls = (message.tool_calls ?? []).map((call) => {
      return `${call.function.name} ${call.function.arguments}`;
    });
    const content = message.content ?? '';
    return [typeof content === 'string' ? content : JSON.stringify(content), ...calls].join('\n');
  };
  return messages.length > 0 ? messages.map(read).join('\n') : prompt;
}

const ours = [
  ...PRESETS.map((preset) => ({
    name: `tidemark, ${preset}`,
    packages: ['tidemark'],
    make: here((window) => compactor({ window, preset })),
  })),
  {
    // Behind the view, where the provider has most of the request in its cache.
    name: 'tidemark, default, summaries by the model behind the view',
    packages: ['tidemark'],
    make: here((window) => {
      const summary = { request: 'append' };
      return compactor({ window, summary, summarizer: (asked) => summarize(live(asked)) });
    }),
  },
  ...WITH_MODEL.map((preset) => ({
    name: `tidemark, ${preset}, summaries by the model`,
    packages: ['tidemark'],
    make: here((window) => {
      return compactor({ window, preset, summarizer: ({ prompt }) => summarize(prompt) });
    }),
  })),
];

const python = (file, recalls) => (window, context) => {
  return pythonPeer(context.python, file, [window], recalls);
};

export const policies = [
  ...ours,
  { name: 'lovia', packages: ['lovia'], make: python('./lovia_driver.py', loviaRecalls) },
  {
    name: 'LangChain summarization',
    packages: ['langchain', '@langchain/core'],
    make: here(langchainSummarization),
  },
  { name: 'LangChain trimMessages', packages: ['@langchain/core'], make: here(langchainTrim) },
  { name: 'AI SDK pruneMessages', packages: ['ai'], make: here(aiSdkPrune) },
  { name: 'Mastra TokenLimiter', packages: ['@mastra/core'], make: here(mastraLimiter) },
  { name: 'Cloudflare agents', packages: ['agents'], make: here(cloudflare) },
  { name: 'PraisonAI', packages: ['praisonaiagents'], make: python('./praison_driver.py') },
  { name: 'no compaction', packages: [], make: here(() => whole) },
  // Last, for it takes minutes: it counts all messages again after each one that it clears.
  {
    name: 'LangChain context editing',
    packages: ['langchain', '@langchain/core'],
    make: here(langchainClearing),
  },
];
