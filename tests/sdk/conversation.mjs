// AI SDK conversations for the tests, with the oddities that all of its versions accept.
import { output } from '../js/chat.mjs';
import { sign } from './vendors/anthropic.mjs';

const call = (id, input) => ({ type: 'tool-call', toolCallId: id, toolName: 'read_file', input });

const result = (id, value) => ({
  type: 'tool-result',
  toolCallId: id,
  toolName: 'read_file',
  output: value,
});

/** A result of each type in turn. */
function typed(seed, text) {
  switch (seed % 5) {
    case 0:
      return { type: 'text', value: text };
    case 1:
      return { type: 'json', value: { lines: text.split('\n'), seed } };
    case 2:
      return { type: 'error-text', value: text };
    case 3:
      return { type: 'error-json', value: { error: text } };
    default:
      return { type: 'content', value: [{ type: 'text', text }] };
  }
}

/** An agent's conversation: one turn of the user, then batches of calls with signed thinking. */
export function agent(turns, chars = 3000) {
  const png = Uint8Array.from(
    { length: 64 },
    (_, at) => [137, 80, 78, 71, 13, 10, 26, 10][at] ?? at,
  );
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Find out why the build is slow.' },
        { type: 'image', image: png, mediaType: 'image/png' },
      ],
    },
  ];
  for (let seed = 0; seed < turns; seed++) {
    const thinking = `step ${seed}: look at part ${seed}`;
    const ids = Array.from({ length: 1 + (seed % 3) }, (_, at) => `call_${seed}_${at}`);
    messages.push({
      role: 'assistant',
      content: [
        {
          type: 'reasoning',
          text: thinking,
          providerOptions: { anthropic: { signature: sign(thinking) } },
        },
        { type: 'text', text: `Reading part ${seed}.` },
        ...ids.map((id, at) => call(id, { path: `part-${seed}-${at}.rs` })),
      ],
    });
    const results = ids.map((id, at) => result(id, typed(seed + at, output(seed * 3 + at, chars))));
    // The results of a batch in one message, or in one each.
    if (seed % 2 === 0) messages.push({ role: 'tool', content: results });
    else messages.push(...results.map((one) => ({ role: 'tool', content: [one] })));
    if (seed % 4 === 3) {
      messages.push({ role: 'assistant', content: `Part ${seed} is fine.` });
      messages.push({ role: 'user', content: `Go on with part ${seed + 1}.` });
    }
  }
  return messages;
}
