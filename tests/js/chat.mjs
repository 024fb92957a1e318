// OpenAI Chat transcripts for the tests, and what the vendor accepts of them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** One of the real transcripts in tests/data. */
export function recorded(name) {
  return JSON.parse(readFileSync(new URL(`../data/${name}.json`, import.meta.url), 'utf8'));
}

/** Text of some length, different for each seed, that reads like the output of a tool. */
export function output(seed, chars) {
  let text = '';
  for (let line = 1; text.length < chars; line++) {
    text += `${seed}:${line}: checked src/part-${(seed * 31 + line * 7) % 97}.rs, ${line * 13} ms\n`;
  }
  return text.slice(0, chars);
}

/** One turn of an agent: a call and its result. */
export function turn(seed, chars = 4000) {
  const id = `call_${seed}`;
  const call = { name: 'read_file', arguments: `{"path":"part-${seed}.rs"}` };
  return [
    { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: call }] },
    { role: 'tool', tool_call_id: id, content: output(seed, chars) },
  ];
}

/** An agent's transcript of 2 + 2 × turns messages. */
export function agent(turns, chars = 4000) {
  return [
    { role: 'system', content: 'You are a careful programmer.' },
    { role: 'user', content: 'Find out why the build is slow.' },
    ...Array.from({ length: turns }, (_, seed) => turn(seed, chars)).flat(),
  ];
}

/** Makes a value and all inside it immutable: a write then throws, in strict mode. */
export function frozen(value) {
  // Binary data cannot be frozen.
  if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) {
    Object.values(value).forEach(frozen);
    Object.freeze(value);
  }
  return value;
}

/** What Chat Completions refuses, as documented: each result right after its call, none missing. */
export function assertValid(messages) {
  let due = [];
  for (const [at, message] of messages.entries()) {
    const { role, content, tool_calls: calls = [] } = message;
    assert.ok(['system', 'developer', 'user', 'assistant', 'tool'].includes(role), `role at ${at}`);
    if (role === 'tool') {
      assert.equal(typeof message.tool_call_id, 'string', `tool_call_id at ${at}`);
      assert.ok(due.includes(message.tool_call_id), `no call waits for the result at ${at}`);
      assert.ok(content !== null && content !== undefined, `a result without content at ${at}`);
      due = due.filter((id) => id !== message.tool_call_id);
      continue;
    }
    assert.deepEqual(due, [], `unanswered before message ${at}`);
    due = calls.map((call) => call.id);
    assert.equal(new Set(due).size, due.length, `ids repeat in message ${at}`);
    for (const call of calls) JSON.parse(call.function.arguments);
    if (calls.length === 0) assert.ok(content?.length > 0, `nothing in message ${at}`);
  }
}

/** Bytes of a view, as they are sent. */
export const bytes = (messages) => messages.map((message) => JSON.stringify(message));

/** The reference that the first marker of a view shows. */
export function refIn(messages) {
  return /recall\(ref="([0-9a-f]{12})"\)/.exec(
    JSON.stringify(messages).replaceAll('\\"', '"'),
  )?.[1];
}

/** Everything that recall pages through, joined. */
export async function allPages(compactor, ref) {
  let text = '';
  for (let offset = 0; offset !== undefined; ) {
    const page = await compactor.recall({ ref, offset });
    const [head] = page.split('\n', 1);
    text += page.slice(head.length + 1);
    const next = /go on with offset (\d+)\]$/.exec(head);
    offset = next ? Number(next[1]) : undefined;
  }
  return text;
}

/** Headings of a summary by the template of tasks. */
export const headings = [
  'Session intent',
  'Current state',
  'Key facts & decisions',
  'Artifacts',
  'Constraints & preferences',
  'Next steps',
];

/** What a good summarizer answers. */
export const summary = headings
  .map((heading) => `## ${heading}\nThe build of part-1 is slow.`)
  .join('\n\n');
