// The words of a message, for people to know it by.
import { glimpse } from './terminal.js';

/** The beginning of what a value says: its texts, without names of members and payloads. */
export function beginning(value: unknown, length: number): string {
  let text = '';
  for (const piece of texts(value, 0)) {
    text += `${piece} `;
    if (text.length > length * 2) break;
  }
  return glimpse(text, length);
}

const SILENT =
  /^(role|type|id|tool_use_id|tool_call_id|call_id|signature|encrypted_content|toolCallId)$/;

function* texts(value: unknown, depth: number): Generator<string> {
  if (typeof value === 'string') {
    if (!value.startsWith('data:') && value.trim() !== '') yield value;
  } else if (Array.isArray(value)) {
    for (const inner of value) yield* texts(inner, depth + 1);
  } else if (typeof value === 'object' && value !== null && depth < 8) {
    for (const [name, inner] of Object.entries(value)) {
      const payload = name === 'data' && typeof inner === 'string' && inner.length > 200;
      if (!SILENT.test(name) && !payload) yield* texts(inner, depth + 1);
    }
  }
}
