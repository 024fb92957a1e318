// The exact names that an agent needs again, and where they stand.
import type { ChatMessage } from '../types.js';

/**
 * Distinct identifiers of a text in order: URLs, paths, file names, UUIDs, hashes, ids, error names,
 * and numbers of four digits and more. A path counts as one, not again by its parts.
 */
export function identifiers(text: string): Set<string> {
  const found = new Set<string>();
  for (const [token] of text.matchAll(TOKEN)) {
    const name = token.replace(/[.,:;!?+@~-]+$/, '');
    if (name.length <= LONGEST && isIdentifier(name)) found.add(name);
  }
  return found;
}

/** Whether a text has an identifier whole, not as a part of a longer word or number. */
export function mentions(text: string, identifier: string): boolean {
  const led = WORD.test(identifier.charAt(0));
  for (let at = text.indexOf(identifier); at >= 0; at = text.indexOf(identifier, at + 1)) {
    const before = at > 0 && led && WORD.test(text.charAt(at - 1));
    if (!before && !WORD.test(text.charAt(at + identifier.length))) return true;
  }
  return false;
}

/**
 * What a message of any wire format says, as text: its content, its reasoning, and the names and
 * decoded arguments of its calls.
 */
export function wordsOf(message: ChatMessage): string {
  return plain([...textsIn(message), ...callsOf(message)]);
}

/** The same without reasoning: what the message does. */
export function deedsOf(message: ChatMessage): string {
  return plain([...textsIn(message, true), ...callsOf(message)]);
}

/** Whether the model wrote the message, or the item. */
export function fromModel(message: ChatMessage | undefined): boolean {
  const { role, type } = (message ?? {}) as Worded;
  if (role !== undefined) return role === 'assistant' || role === 'model';
  return typeof type === 'string' && (type === 'reasoning' || type.endsWith('_call'));
}

interface Worded extends ChatMessage {
  type?: unknown;
  name?: unknown;
  arguments?: unknown;
  tool_calls?: { function?: { name?: unknown; arguments?: unknown } }[];
}

/** The calls that are not part of the content: those of OpenAI. */
function* callsOf(message: ChatMessage): Generator<string> {
  const { tool_calls: calls, name, arguments: source } = message as Worded;
  const all = Array.isArray(calls) ? calls.map((call) => call?.function) : [];
  if (source !== undefined) all.push({ name, arguments: source });
  for (const call of all) {
    yield* textsIn(call?.name);
    let decoded = call?.arguments;
    if (typeof decoded === 'string') {
      try {
        decoded = JSON.parse(decoded);
      } catch {
        // What is no JSON is read as it stands.
      }
    }
    yield* textsIn(decoded);
  }
}

/** What is no content: who and what it is, what the calls say, signatures and payloads. */
const SILENT =
  /^(role|type|id|status|tool_calls|arguments|tool_call_id|tool_use_id|call_id|toolCallId|signature|thoughtSignature|encrypted_content)$/;

const REASONING = /^(thinking|redacted_thinking|reasoning)$/;

/** Every string and number inside a value, names of members left out; no payload of a file. */
function* textsIn(value: unknown, deeds = false): Generator<string> {
  if (typeof value === 'string') {
    if (!value.startsWith('data:')) yield value;
  } else if (typeof value === 'number') {
    yield String(value);
  } else if (Array.isArray(value)) {
    for (const member of value) yield* textsIn(member, deeds);
  } else if (typeof value === 'object' && value !== null) {
    const { type, thought, data } = value as Record<string, unknown>;
    if (deeds && (REASONING.test(String(type)) || thought === true)) return;
    for (const [name, member] of Object.entries(value)) {
      if (SILENT.test(name) || (deeds && name === 'reasoning_content')) continue;
      const payload = member === data && typeof data === 'string' && data.length > 500;
      if (!payload) yield* textsIn(member, deeds);
    }
  }
}

/** The source of a string inside a text has escapes, which are no letters. */
const plain = (texts: readonly string[]) => texts.join('\n').replace(/\\[nrt"]/g, ' ');

const WORD = /^[A-Za-z0-9_]$/;

/** A URL, a Windows path, a number in groups, or a run of what other identifiers consist of. */
const TOKEN =
  /[a-z][a-z0-9+]*:\/\/[^\s"'`<>()[\]{}|\\^,]+|[A-Za-z]:\\[\w\\.@-]+|\d{1,3}(?:,\d{3})+(?!\d)|[\w./~@#+-]*\w[\w./~@#+-]*/g;

const LONGEST = 200;

function isIdentifier(token: string): boolean {
  if (token.includes('://')) return token.length > 9;
  if (/^[A-Za-z]:\\/.test(token)) return token.length > 4;
  if (token.includes('/')) return isPath(token);
  return (
    NUMBER.test(token) ||
    (FILE.test(token) && token !== 'console.log') ||
    UUID.test(token) ||
    HASH.test(token) ||
    ERROR.test(token) ||
    ID.test(token)
  );
}

/**
 * Rooted, or with a file name at its end, or of three parts and more in lower case; no fraction, no
 * date, and no list of words with strokes between them.
 */
function isPath(token: string): boolean {
  const parts = token.split('/').filter((part) => part !== '');
  if (!/[A-Za-z]{2}/.test(token) || /^\/(\/|dev\/)/.test(token)) return false;
  const last = parts.at(-1) ?? '';
  if (FILE.test(last)) return true;
  if (/^(~|\.{1,2})?\//.test(token)) return parts.length > 1;
  return parts.length > 2 && parts.every((part) => /^[a-z0-9._@-]/.test(part));
}

const NUMBER = /^\d{4,}(\.\d+)?$|^\d{1,3}(,\d{3})+$/;
const FILE = new RegExp(
  `^[\\w@+-][\\w.@+-]*\\.(${[
    'rs|py|js|ts|tsx|jsx|mjs|cjs|go|c|h|cc|cpp|hpp|cu|cuh|cs|java|kt|swift|rb|php|lua|sh|bash|ps1|sql',
    'html|css|scss|vue|svelte|json|jsonl|yaml|yml|toml|lock|xml|md|rst|txt|log|csv|tsv|ini|cfg|conf',
    'env|ipynb|pdf|png|jpg|jpeg|gif|svg|zip|gz|tar|whl|patch|diff|db|sqlite|wasm|so|bin|pt|proto',
  ].join('|')})$`,
);
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const HASH = /^(?=.*\d)(?=.*[a-f])[0-9a-f]{7,64}$/i;
const ERROR =
  /^[A-Z]\w*(Error|Exception|Warning)$|^ERR_\w+$|^(ENOENT|EACCES|EPERM|EEXIST|EISDIR|ENOTDIR|EINVAL|EBADF|EPIPE|ENOSPC|ENOMEM|ECONN\w+|EADDR\w+|ETIMEDOUT|ENOTFOUND)$/;
/** PROJ-123, #4711, user_lee_3668, XEHM4B. */
const ID =
  /^[A-Z]{2,}-\d+$|^#\d+$|^[a-z]+(_[a-z0-9]+)*_\d{3,}$|^(?=.*\d)(?=.*[A-Z])[A-Z0-9]{5,12}$/;
