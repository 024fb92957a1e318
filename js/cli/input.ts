// Files with conversations: what they are, and the messages in them.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import {
  findNodeAtLocation,
  type ParseError,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { type FormatName, Session, TidemarkError } from '../index.js';
import { BrokenArray, elements } from './elements.js';
import { EXIT, Failure, reason } from './failure.js';
import { Log, type LogKind } from './log.js';

/** A line that could not be read, and why. Lines and columns count from 1. */
export interface Warning {
  line: number;
  column: number;
  message: string;
}

/** A conversation as a file has it. */
export interface Input {
  /** The file's name, or `stdin`. */
  name: string;
  /** What kind of file it is. */
  kind: 'messages' | 'request' | LogKind;
  format: FormatName | 'auto';
  messages: object[];
  /** Of a request: its tools, its instructions, its model, and its bytes. */
  tools: readonly unknown[] | undefined;
  system: unknown;
  model: string | undefined;
  body: Uint8Array | undefined;
  /** Seconds since any moment at which each message was logged, where the log says so. */
  times: (number | undefined)[];
  warnings: Warning[];
  /** How the view is to be written: the messages a line each, or one indented document. */
  style: 'lines' | 'indented' | 'dense';
  /** Where a place such as `messages[3].content` stands in the file. */
  locate(path: string): { line: number; column: number } | undefined;
}

/** What reading may be told. */
export interface ReadOptions {
  format?: FormatName | 'auto' | undefined;
  /** Hears how many bytes of how many have been read; the size of a pipe is unknown. */
  progress?: ((read: number, size: number | undefined) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** A JSON document that is read whole must fit into a string; the rest has no limit. */
const MOST_BYTES = 400 * 1024 * 1024;

/** Characters of a line. */
const LONGEST_LINE = 256 * 1024 * 1024;

/** A log of more bytes is read in pieces of so many. */
const LARGE_LOG = 32 * 1024 * 1024;
const PIECE = 4 * 1024 * 1024;

/** Warnings that are kept one by one. */
const MOST_WARNINGS = 1000;

export const nameOf = (path: string) => (path === '-' ? 'stdin' : path);

/** Reads a whole conversation. `-` is stdin; gzip is told from its first bytes. */
export async function read(path: string, options: ReadOptions = {}): Promise<Input> {
  const source = new Source(path, options);
  const { name } = source;
  const wanted = options.format ?? 'auto';
  const lines = source.lines();
  const seen: Line[] = [];
  const next = async () => {
    for (;;) {
      const { done, value } = await lines.next();
      if (done) return undefined;
      seen.push(value);
      if (!isBlank(value)) return value;
    }
  };
  const first = await next();
  if (first === undefined) throw new Failure(EXIT.input, `${name}: empty`, EMPTY);
  const second = await next();
  const all = (async function* () {
    yield* seen;
    yield* lines;
  })();
  const value = quietly(first.text);
  const log = new Log();
  const warnings = new Warnings();
  if (isNamedLines(path) || (isObject(value) && second !== undefined)) {
    for await (const line of all) feed(log, line, warnings);
    return fromLog(name, log, warnings, wanted);
  }
  if (value !== undefined && second === undefined) {
    return fromDocument(name, value, await joined(all, name), wanted);
  }
  // A document of several lines, or JSON lines whose first is broken.
  const text = await joined(all, name);
  const whole = quietly(text);
  if (whole !== undefined) return fromDocument(name, whole, text, wanted);
  for (const [at, line] of text.split('\n').entries()) {
    feed(log, { text: line, number: at + 1 }, warnings);
  }
  // Lines that stand for themselves tell JSON lines.
  if (log.count > 0 && log.count >= warnings.count) return fromLog(name, log, warnings, wanted);
  const { line, column, message } = fault(text);
  throw new Failure(EXIT.input, `${name}:${line}:${column}: ${message}`);
}

const isNamedLines = (path: string) => /\.(jsonl|ndjson)(\.gz)?$/i.test(path);

/** The text of all lines, as it was. */
async function joined(lines: AsyncIterable<Line>, name: string): Promise<string> {
  const texts: string[] = [];
  let size = 0;
  for await (const { text } of lines) {
    texts.push(text);
    size += text.length + 1;
    if (size > MOST_BYTES) throw new Failure(EXIT.input, `${name}: ${LARGE}`);
  }
  return texts.join('\n');
}

const isBlank = ({ text }: Line) => text.trim() === '';

const EMPTY = 'give a JSON or JSONL file with a conversation, or pipe one in with -';
const LARGE =
  'too large to be read whole (400 MB): inspect and validate read JSON lines and arrays of any size';

/**
 * The messages of a large file in pieces of some bytes, cut where a user speaks and no call waits:
 * of JSON lines, or of a document that is an array. What was read of it is given up.
 */
export async function* pieces(path: string, options: ReadOptions): AsyncGenerator<Input> {
  const source = new Source(path, options);
  const log = new Log();
  const warnings = new Warnings();
  let size = 0;
  let seen = false;
  for await (const line of isNamedLines(path) ? source.lines() : source.elements()) {
    size += line.text.length;
    seen ||= !isBlank(line);
    const { skipped } = log;
    feed(log, line, warnings);
    // Logs have records that are no messages; an array of messages has none.
    if (line.value !== undefined && log.kind === 'messages' && log.skipped > skipped) {
      const message = 'message: neither a role nor a type that is known';
      warnings.add({ line: line.number, column: line.column ?? 1, message });
    }
    if (size < PIECE || !log.resting) continue;
    size = 0;
    if (log.count > 0) yield fromLog(source.name, log.take(), warnings, options.format ?? 'auto');
    warnings.list.length = 0;
  }
  if (!seen) throw new Failure(EXIT.input, `${source.name}: empty`, EMPTY);
  yield fromLog(source.name, log, warnings, options.format ?? 'auto', true);
}

/** Whether a file is so large that it is better read in pieces: JSON lines, and arrays. */
export async function isLarge(path: string): Promise<boolean> {
  if (path === '-') return false;
  try {
    const { size } = await stat(path);
    if (size * (path.endsWith('.gz') ? 8 : 1) <= LARGE_LOG) return false;
    return isNamedLines(path) || (await new Source(path, {}).isArray());
  } catch {
    return false;
  }
}

interface Line {
  text: string;
  number: number;
  /** Where in the line it begins, counted from 1; 1 where not given. */
  column?: number;
  /** What it holds, where it has been read. */
  value?: unknown;
}

/** A file as lines of text. */
class Source {
  readonly name: string;
  readonly #path: string;
  readonly #options: ReadOptions;

  constructor(path: string, options: ReadOptions) {
    this.name = nameOf(path);
    this.#path = path;
    this.#options = options;
  }

  /** All lines, blank ones too; behind a last line feed stands an empty one. */
  async *lines(): AsyncGenerator<Line> {
    let rest: string[] = [];
    let length = 0;
    let number = 1;
    for await (const text of this.#texts()) {
      let from = 0;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
        rest.push(text.slice(from, end));
        const line = rest.length === 1 ? (rest[0] ?? '') : rest.join('');
        rest = [];
        length = 0;
        from = end + 1;
        yield { text: line, number };
        number += 1;
      }
      if (from < text.length) {
        rest.push(text.slice(from));
        length += text.length - from;
        if (length > LONGEST_LINE) {
          throw new Failure(EXIT.input, `${this.name}:${number}:1: ${LARGE}`);
        }
      }
    }
    yield { text: rest.join(''), number };
  }

  /** The elements of a document that is an array; each is JSON. */
  async *elements(): AsyncGenerator<Line> {
    try {
      for await (const { text, line, column } of elements(this.#texts())) {
        const value = quietly(text);
        if (value === undefined) {
          const at = fault(text);
          const right = at.line === 1 ? column - 1 : 0;
          throw new BrokenArray(at.message, line + at.line - 1, at.column + right);
        }
        yield { text, number: line, column, value };
      }
    } catch (error) {
      if (!(error instanceof BrokenArray)) throw error;
      const { line, column, message } = error;
      throw new Failure(EXIT.input, `${this.name}:${line}:${column}: ${message}`);
    }
  }

  /** Whether the text begins as an array does. */
  async isArray(): Promise<boolean> {
    for await (const text of this.#texts()) {
      const begins = text.trimStart();
      if (begins !== '') return begins.startsWith('[');
    }
    return false;
  }

  /** The text as it comes. */
  async *#texts(): AsyncGenerator<string> {
    const decoder = new TextDecoder('utf-8');
    try {
      for await (const chunk of await this.#plain()) {
        this.#options.signal?.throwIfAborted();
        yield decoder.decode(chunk as Uint8Array, { stream: true });
      }
    } catch (error) {
      throw this.#unreadable(error);
    }
    yield decoder.decode();
  }

  async #plain(): Promise<AsyncIterable<unknown>> {
    const path = this.#path;
    let size: number | undefined;
    let raw: Readable;
    if (path === '-') {
      if (process.stdin.isTTY) {
        throw new Failure(EXIT.usage, 'stdin is a terminal: pipe a file in, or name one');
      }
      raw = process.stdin;
    } else {
      const found = await stat(path);
      if (found.isDirectory()) throw new Failure(EXIT.input, `${path}: a folder, not a file`);
      if (found.isFile()) size = found.size;
      raw = createReadStream(path, { highWaterMark: 1 << 20 });
    }
    const chunks = this.#counted(raw, size);
    const first = await chunks.next();
    const head = first.done ? new Uint8Array() : first.value;
    const whole = Readable.from(
      (async function* () {
        if (!first.done) yield head;
        yield* chunks;
      })(),
      { objectMode: false },
    );
    if (head[0] !== 0x1f || head[1] !== 0x8b) return whole;
    const plain = createGunzip();
    whole.on('error', (error) => plain.destroy(error));
    return whole.pipe(plain);
  }

  async *#counted(raw: Readable, size: number | undefined): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const chunk of raw) {
      const part = chunk as Uint8Array;
      bytes += part.length;
      this.#options.progress?.(bytes, size);
      yield part;
    }
  }

  #unreadable(error: unknown): unknown {
    if (error instanceof Failure || this.#options.signal?.aborted) return error;
    const { code } = error as NodeJS.ErrnoException;
    const why =
      {
        ENOENT: 'no such file',
        EACCES: 'permission denied',
        Z_BUF_ERROR: 'the gzip data ends early',
      }[String(code)] ?? reason(error);
    return new Failure(EXIT.input, `${this.name}: ${why}`);
  }
}

/** Warnings, not more than anybody reads. */
class Warnings {
  readonly list: Warning[] = [];
  count = 0;

  add(warning: Warning): void {
    this.count += 1;
    if (this.list.length < MOST_WARNINGS) this.list.push(warning);
  }
}

function feed(log: Log, line: Line, warnings: Warnings): void {
  if (isBlank(line)) return;
  const value = line.value === undefined ? quietly(line.text) : line.value;
  if (value === undefined) {
    const { column, message } = fault(line.text);
    warnings.add({ line: line.number, column, message });
    return;
  }
  if (!isObject(value)) {
    const what = Array.isArray(value) ? 'an array' : `a ${value === null ? 'null' : typeof value}`;
    warnings.add({ line: line.number, column: 1, message: `expected an object, found ${what}` });
    return;
  }
  log.push(value, line.number);
}

function quietly(text: string): unknown {
  try {
    return JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text) as unknown;
  } catch {
    return undefined;
  }
}

/** The first thing that makes a text no JSON, and where. */
function fault(text: string): Warning {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true, allowTrailingComma: false });
  const first = errors[0];
  if (first === undefined) return { line: 1, column: 1, message: 'not JSON' };
  const words = printParseErrorCode(first.error)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
  const cut = first.offset >= text.trimEnd().length;
  return { ...placeOf(text, first.offset), message: cut ? `${words}: the text ends here` : words };
}

function placeOf(text: string, offset: number): { line: number; column: number } {
  let line = 1;
  let start = 0;
  for (let end = text.indexOf('\n'); end >= 0 && end < offset; end = text.indexOf('\n', start)) {
    line += 1;
    start = end + 1;
  }
  return { line, column: offset - start + 1 };
}

function fromLog(
  name: string,
  log: Log,
  warnings: Warnings,
  wanted: FormatName | 'auto',
  empty = false,
): Input {
  const { messages, lines, times, kind, request, model, system, format, skipped } = log.finish();
  if (request) {
    const { value, line } = request;
    const input = fromDocument(name, value, JSON.stringify(value), wanted);
    const others = log.requests - 1;
    if (others > 0) {
      const message = `the last of ${others + 1} requests is read`;
      warnings.add({ line, column: 1, message });
    }
    return { ...input, warnings: warnings.list, locate: () => ({ line, column: 1 }) };
  }
  if (messages.length === 0 && !empty) {
    const first = warnings.list[0];
    if (first) {
      const { line, column, message } = first;
      throw new Failure(EXIT.input, `${name}:${line}:${column}: ${message}`);
    }
    const what = `no messages found in ${skipped} ${skipped === 1 ? 'line' : 'lines'}`;
    throw new Failure(EXIT.input, `${name}:1:1: ${what}`, SHAPES);
  }
  const named = wanted === 'auto' ? format : wanted;
  const left = leaveOut(messages, named, ({ at, message }) => {
    warnings.add({ line: lines[at] ?? 1, column: 1, message });
    lines.splice(at, 1);
    times.splice(at, 1);
  });
  if (left === 0 && !empty) {
    const { line = 1, message = '' } = warnings.list.at(-1) ?? {};
    throw new Failure(EXIT.input, `${name}:${line}:1: ${message}`);
  }
  return {
    name,
    kind,
    format: named,
    messages,
    tools: undefined,
    system,
    model,
    body: undefined,
    times,
    warnings: warnings.list,
    style: kind === 'messages' ? 'lines' : 'indented',
    locate(path) {
      const line = lines[Number(/^messages\[(\d+)\]/.exec(path)?.[1])];
      return line === undefined ? undefined : { line, column: 1 };
    },
  };
}

/** Takes out messages that the engine cannot read, a broken one at a time; returns what is left. */
function leaveOut(
  messages: object[],
  format: FormatName | 'auto',
  report: (fault: { at: number; message: string }) => void,
): number {
  if (messages.length === 0) return 0;
  const session = new Session<object>({ format });
  try {
    for (;;) {
      try {
        session.sync(messages);
        return messages.length;
      } catch (error) {
        const { path = '', message } = TidemarkError.isInstance(error) ? error : { message: '' };
        const at = Number(/^messages\[(\d+)\]/.exec(path)?.[1] ?? Number.NaN);
        if (Number.isNaN(at) || at >= messages.length) throw error;
        messages.splice(at, 1);
        report({ at, message: message.replace(/^messages\[\d+\]\.?/, 'message: ') });
        if (messages.length === 0) return 0;
      }
    }
  } finally {
    session.dispose();
  }
}

const SHAPES =
  'known are arrays of messages, request bodies, a message a line, Claude Code and Codex sessions';

function fromDocument(
  name: string,
  value: unknown,
  text: string,
  wanted: FormatName | 'auto',
): Input {
  const style = text.trim().includes('\n') ? 'indented' : 'dense';
  const found = conversationIn(value);
  if (found === undefined) {
    throw new Failure(EXIT.input, `${name}:1:1: no messages found`, SHAPES);
  }
  const { messages, holder, path, request } = found;
  const whole = request && path.length === 1;
  const log = Log.of(messages);
  const blank = {
    name,
    kind: 'messages' as const,
    format: wanted,
    tools: undefined,
    system: undefined,
    model: undefined,
    body: undefined,
    times: [],
    warnings: [],
    style: style as Input['style'],
  };
  const locate = (place: string) => locateIn(text, place, path);
  if (log) {
    const { kind, model, system, format, times, ...rest } = log.finish();
    const named = wanted === 'auto' ? format : wanted;
    return { ...blank, kind, model, system, format: named, times, messages: rest.messages, locate };
  }
  if (!request || !isObject(holder)) return { ...blank, messages, locate };
  const system = holder.system ?? holder.instructions ?? systemOf(holder);
  const tools = Array.isArray(holder.tools) ? holder.tools : undefined;
  const model = typeof holder.model === 'string' ? holder.model : undefined;
  const format = wanted === 'auto' ? formatOf(holder) : wanted;
  const bytes = whole ? new TextEncoder().encode(text.replace(/^\uFEFF/, '')) : undefined;
  const request_ = { kind: 'request' as const, system, tools, model, format, body: bytes };
  return { ...blank, ...request_, messages, locate };
}

const systemOf = (holder: Record<string, unknown>) =>
  holder.systemInstruction ?? holder.system_instruction;

/** The wire format of a request, where its members tell; the engine looks at the messages. */
function formatOf(request: Record<string, unknown>): FormatName | 'auto' {
  if (Array.isArray(request.contents)) return 'gemini';
  if (request.input !== undefined) return 'openai-responses';
  const tools = Array.isArray(request.tools) ? (request.tools as unknown[]) : [];
  if (
    request.system !== undefined ||
    tools.some((tool) => isObject(tool) && 'input_schema' in tool)
  ) {
    return 'anthropic';
  }
  return 'auto';
}

interface Found {
  messages: object[];
  holder: unknown;
  /** The members that lead to the messages. */
  path: (string | number)[];
  request: boolean;
}

/** The messages of a document: itself, a member of it, or the last recorded request. */
function conversationIn(value: unknown, path: (string | number)[] = []): Found | undefined {
  if (Array.isArray(value)) {
    const objects = value.length > 0 && value.every(isObject);
    return objects
      ? { messages: value as object[], holder: value, path, request: false }
      : undefined;
  }
  if (!isObject(value)) return undefined;
  for (const name of ['messages', 'contents', 'input', 'prompt']) {
    const inner = value[name];
    if (typeof inner === 'string' && name === 'input') {
      const messages = [{ role: 'user', content: inner }];
      return { messages, holder: value, path: [...path, name], request: true };
    }
    const found = conversationIn(inner, [...path, name]);
    if (Array.isArray(inner) && found) return { ...found, holder: value, request: true };
  }
  for (const name of ['request', 'body']) {
    const found = isObject(value[name]) && conversationIn(value[name], [...path, name]);
    if (found) return found;
  }
  const { interactions } = value;
  if (Array.isArray(interactions)) {
    for (let at = interactions.length - 1; at >= 0; at--) {
      const found = conversationIn(interactions[at], [...path, 'interactions', at]);
      if (found) return found;
    }
  }
  for (const [name, inner] of Object.entries(value)) {
    const spoken = (entry: unknown) => isObject(entry) && ('role' in entry || 'message' in entry);
    if (Array.isArray(inner) && inner.length > 0 && inner.some(spoken)) {
      return conversationIn(inner, [...path, name]);
    }
  }
  return undefined;
}

function locateIn(text: string, place: string, path: (string | number)[]) {
  const root = parseTree(text);
  if (!root) return undefined;
  const inner = [...place.matchAll(/[^.[\]]+/g)].map(([step]) => step);
  const steps = inner[0] === 'messages' || inner[0] === path.at(-1) ? inner.slice(1) : inner;
  let node = findNodeAtLocation(root, path);
  for (const step of steps) {
    const next = node && findNodeAtLocation(node, [node.type === 'array' ? Number(step) : step]);
    if (!next) break;
    node = next;
  }
  return node && placeOf(text, node.offset);
}

/** What the engine says of the messages, with the place in the file. */
export function located(input: Input, error: unknown): unknown {
  if (!TidemarkError.isInstance(error)) return error;
  if (error.code !== 'invalid_transcript' && error.code !== 'invalid_json') return error;
  const { line, column } = input.locate(error.path ?? '') ?? { line: 1, column: 1 };
  return new Failure(EXIT.input, `${input.name}:${line}:${column}: ${error.message}`);
}

/** A short name of the file, for titles. */
export const titleOf = (input: Input) =>
  input.name === 'stdin' ? 'stdin' : basename(input.name).replace(/\.gz$/, '');

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
