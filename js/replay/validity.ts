// What OpenAI Chat Completions refuses, by its API reference and the errors that it answers with.
import type { ChatMessage } from '../types.js';

/** The first thing in a request that the API would refuse, with its place; null where none is. */
export function refusal(messages: readonly ChatMessage[]): string | null {
  if (messages.length === 0) return "[] is too short - 'messages'";
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as Shape | null | undefined;
    const here = (what: string) => `messages[${at}]: ${what}`;
    if (typeof message !== 'object' || message === null) return here('not an object');
    if (message.role === 'system' || message.role === 'developer' || message.role === 'user') {
      if (!filled(message.content)) return here('content must not be empty');
    } else if (message.role === 'tool') {
      return here("role 'tool' must be a response to a preceding message with 'tool_calls'");
    } else if (message.role === 'assistant') {
      const { tool_calls: calls } = message;
      if (calls !== undefined && !(Array.isArray(calls) && calls.length > 0)) {
        return here('tool_calls is an empty array');
      }
      if (calls === undefined) {
        const said = [message.content, message.refusal].some(filled);
        if (!said && !message.audio && !message.function_call) {
          return here('content or tool_calls must be set');
        }
        continue;
      }
      const fault = faultOfCalls(calls);
      if (fault !== null) return here(fault);
      const waiting = new Set(calls.map((call) => call?.id));
      let next = at + 1;
      for (; waiting.size > 0; next++) {
        const answer = messages[next] as Shape | undefined;
        if (answer?.role !== 'tool' || !waiting.delete(answer.tool_call_id)) break;
        if (typeof answer.content !== 'string' && !filled(answer.content)) {
          return `messages[${next}]: a tool message needs a string or parts as content`;
        }
      }
      if (waiting.size > 0) return here("a call in 'tool_calls' is not followed by its result");
      at = next - 1;
    } else if (message.role !== 'function') {
      return here('invalid role');
    }
  }
  return null;
}

interface Shape extends ChatMessage {
  tool_call_id?: unknown;
  tool_calls?: (Call | null)[];
  refusal?: unknown;
  audio?: unknown;
  function_call?: unknown;
}

interface Call {
  id?: unknown;
  function?: { name?: unknown; arguments?: unknown };
  custom?: { name?: unknown; input?: unknown };
}

function faultOfCalls(calls: readonly (Call | null)[]): string | null {
  const ids = new Set<unknown>();
  for (const call of calls) {
    const name = call?.function?.name ?? call?.custom?.name;
    if (!text(call?.id) || !text(name)) return 'a tool call without id or name';
    if (ids.has(call?.id)) return 'duplicate tool call id in one message';
    ids.add(call?.id);
    if (call?.function && typeof call.function.arguments !== 'string') {
      return 'function.arguments must be a string';
    }
  }
  return null;
}

const text = (value: unknown) => typeof value === 'string' && value !== '';

/** A text, or parts that each have a type and no empty text. */
function filled(content: unknown): boolean {
  if (!Array.isArray(content)) return text(content);
  return (
    content.length > 0 &&
    content.every((part) => text(part?.type) && part.text !== '' && part.text !== null)
  );
}
