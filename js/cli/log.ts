// The messages in what agents log, a record a line.
import { createHash } from 'node:crypto';
import type { FormatName } from '../index.js';

/** Who wrote the log. */
export type LogKind = 'claude-code' | 'codex' | 'messages';

type Json = Record<string, unknown>;

/** Messages of a log, and what it says beside them. */
export interface Logged {
  kind: LogKind;
  format: FormatName | 'auto';
  messages: object[];
  /** The line of each message. */
  lines: number[];
  /** Seconds at which each was logged. */
  times: (number | undefined)[];
  model: string | undefined;
  system: unknown;
  /** Records that hold no message. */
  skipped: number;
  /** The last record that is a whole request. */
  request: { value: Json; line: number } | undefined;
}

/**
 * Takes the records of a log one by one.
 *
 * Claude Code writes a record for each block of an answer; they become one message again, and the
 * results of its calls follow it. Sidechains are left out where the log has a main chain, and so is
 * a summary of what the log itself holds. Of a Codex session the items of the model's input and
 * output are taken.
 */
export class Log {
  #kind: LogKind = 'messages';
  #messages: object[] = [];
  #lines: number[] = [];
  #times: (number | undefined)[] = [];
  #model: string | undefined;
  #system: unknown;
  #skipped = 0;
  #request: { value: Json; line: number } | undefined;
  /** Requests met. */
  requests = 0;
  readonly #seen = new Set<string>();
  /** Sidechain messages, as long as there are no others. */
  #side: [Json, number][] = [];
  /** The answer that may go on: its id, and where it stands. */
  #answer: { id: string; at: number } | undefined;

  /** The log that an array of records is; undefined where they are messages themselves. */
  static of(records: readonly object[]): Log | undefined {
    if (!records.some((record) => isRecord(record as Json))) return undefined;
    const log = new Log();
    for (const record of records) log.push(record as Json, 1);
    return log;
  }

  /** Messages so far. */
  get count(): number {
    return this.#messages.length;
  }

  get kind(): LogKind {
    return this.#kind;
  }

  /** Records so far that hold no message. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Whether the newest message is the user's: everything before it can be looked at by itself. */
  get resting(): boolean {
    const newest = this.#messages.at(-1) as Json | undefined;
    if (newest === undefined || this.#messages.length < 2 || newest.role !== 'user') return false;
    const { content, parts } = newest;
    const blocks = Array.isArray(content) ? content : Array.isArray(parts) ? parts : [];
    return !blocks.some((block) => block?.type === 'tool_result' || block?.functionResponse);
  }

  push(record: Json, line: number): void {
    if (isRecord(record)) this.#claude(record, line);
    else if (isObject(record.payload)) this.#codex(record, record.payload, line);
    else if (isRequest(record)) {
      this.#request = { value: record, line };
      this.requests += 1;
    } else if (isMessage(record)) this.#add(record, line, timeOf(record.timestamp));
    else this.#skipped += 1;
  }

  /** Gives away all messages but the newest. */
  take(): Log {
    const log = new Log();
    log.#kind = this.#kind;
    log.#messages = this.#messages.splice(0, this.#messages.length - 1);
    log.#lines = this.#lines.splice(0, this.#lines.length - 1);
    log.#times = this.#times.splice(0, this.#times.length - 1);
    log.#model = this.#model;
    log.#system = this.#system;
    this.#answer = undefined;
    this.#system = undefined;
    return log;
  }

  finish(): Logged {
    if (this.#messages.length === 0) {
      for (const [record, line] of this.#side) this.#turn(record, line);
    }
    const formats = {
      'claude-code': 'anthropic',
      codex: 'openai-responses',
      messages: 'auto',
    } as const;
    return {
      kind: this.#kind,
      format: formats[this.#kind],
      messages: this.#messages,
      lines: this.#lines,
      times: this.#times,
      model: this.#model,
      system: this.#system,
      skipped: this.#skipped,
      request: this.#messages.length === 0 ? this.#request : undefined,
    };
  }

  #add(message: object, line: number, time: number | undefined): void {
    this.#messages.push(message);
    this.#lines.push(line);
    this.#times.push(time);
  }

  #claude(record: Json, line: number): void {
    this.#kind = 'claude-code';
    // A resumed session logs the messages before it again, some versions under new ids.
    for (const name of namesOf(record)) {
      if (this.#seen.has(name)) return;
      this.#seen.add(name);
    }
    const repeats = record.isCompactSummary === true && this.#messages.length > 0;
    if (repeats || record.isApiErrorMessage === true) this.#skipped += 1;
    else if (record.isSidechain === true || typeof record.parent_tool_use_id === 'string') {
      if (this.#messages.length === 0) this.#side.push([record, line]);
    } else {
      this.#side = [];
      this.#turn(record, line);
    }
  }

  #turn(record: Json, line: number): void {
    const { role, content, id, model } = record.message as Json;
    if (typeof model === 'string' && !model.startsWith('<')) this.#model ??= model;
    const time = timeOf(record.timestamp);
    if (role === 'assistant' && typeof id === 'string' && Array.isArray(content)) {
      const known = this.#answer?.id === id ? this.#messages[this.#answer.at] : undefined;
      if (known) {
        const blocks = (known as { content: unknown[] }).content;
        const texts = new Set(blocks.map((block) => JSON.stringify(block)));
        blocks.push(...content.filter((block) => !texts.has(JSON.stringify(block))));
        return;
      }
      this.#answer = { id, at: this.#messages.length };
      this.#add({ role, content: [...content] }, line, time);
      return;
    }
    const results =
      Array.isArray(content) && content.some((block) => block?.type === 'tool_result');
    const before = this.#messages.at(-1) as { role: string; content: unknown } | undefined;
    if (results && this.#answer && this.#answer.at < this.#messages.length - 1 && before) {
      // The results of one answer stand in one message.
      before.content = [...(before.content as unknown[]), ...content];
      return;
    }
    if (!results) this.#answer = undefined;
    this.#add({ role, content: results ? [...content] : content }, line, time);
  }

  #codex(record: Json, payload: Json, line: number): void {
    this.#kind = 'codex';
    const { type } = record;
    if (type === 'turn_context' && typeof payload.model === 'string') {
      this.#model ??= payload.model;
    }
    if (type === 'session_meta') {
      const { base_instructions: base, instructions } = payload;
      this.#system ??= (isObject(base) ? base.text : undefined) ?? instructions ?? undefined;
    }
    if (type !== 'response_item' || payload.type === 'ghost_snapshot') {
      this.#skipped += 1;
      return;
    }
    const { internal_chat_message_metadata_passthrough: _, metadata: __, ...item } = payload;
    this.#add(item, line, timeOf(record.timestamp));
  }
}

/** A record of Claude Code, or of its output as a stream. */
function isRecord(record: Json): boolean {
  const { type, message } = record;
  const spoken = type === 'user' || type === 'assistant';
  return spoken && isObject(message) && typeof message.role === 'string';
}

/** What a record is known by: its id, and its time with its content. */
function namesOf({ uuid, timestamp, message }: Json): string[] {
  const names: string[] = [];
  if (typeof uuid === 'string' && /^[0-9a-f-]{36}$/.test(uuid)) names.push(uuid);
  if (timeOf(timestamp) !== undefined) {
    const { role, content } = message as Json;
    const hash = createHash('sha1')
      .update(JSON.stringify([role, content]))
      .digest('base64');
    names.push(`${timestamp} ${hash}`);
  }
  return names;
}

function isRequest(record: Json): boolean {
  if (typeof record.role === 'string') return false;
  return ['messages', 'contents', 'input'].some((name) => Array.isArray(record[name]));
}

function isMessage(record: Json): boolean {
  const { role, type } = record;
  if (typeof role === 'string') return true;
  // An item of OpenAI Responses.
  return (
    typeof type === 'string' &&
    /^(message|reasoning|item_reference|compaction)$|_(call|output)$/.test(type)
  );
}

function timeOf(stamp: unknown): number | undefined {
  const time = typeof stamp === 'number' ? stamp : Date.parse(String(stamp));
  return Number.isFinite(time) ? time / 1000 : undefined;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
