// Each vendor's own SDK: a view goes through it to a server that checks the request as the vendor
// does, and the error that it throws for one that is too long is understood.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { Compactor } from '../../pkg/index.js';
import { output } from '../js/chat.mjs';
import { serve } from './server.mjs';
import * as anthropic from './vendors/anthropic.mjs';
import * as gemini from './vendors/gemini.mjs';
import * as openaiChat from './vendors/openai-chat.mjs';
import * as openaiResponses from './vendors/openai-responses.mjs';

const servers = [];
after(() => Promise.all(servers.map((server) => server.close())));

const args = (seed) => ({ path: `part-${seed}.rs` });
const ask = 'Find out why the build is slow.';

const vendors = [
  {
    name: 'OpenAI Chat',
    format: 'openai-chat',
    vendor: openaiChat,
    transcript: (turns) => [
      { role: 'system', content: 'You are careful.' },
      { role: 'user', content: ask },
      ...turns.flatMap((seed) => [
        {
          role: 'assistant',
          content: null,
          tool_calls: [0, 1].map((at) => ({
            id: `call_${seed}_${at}`,
            type: 'function',
            function: { name: 'read_file', arguments: JSON.stringify(args(seed)) },
          })),
        },
        ...[0, 1].map((at) => ({
          role: 'tool',
          tool_call_id: `call_${seed}_${at}`,
          content: output(seed * 2 + at, 2000),
        })),
      ]),
    ],
    orphan: [{ role: 'tool', tool_call_id: 'call_x', content: 'x' }],
    async send(url, messages) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'test', maxRetries: 0 });
      const answer = await client.chat.completions.create({ model: 'gpt-test', messages });
      return answer.choices[0].message.content;
    },
  },
  {
    name: 'OpenAI Responses',
    format: 'openai-responses',
    vendor: openaiResponses,
    transcript: (turns) => [
      { role: 'user', content: ask },
      ...turns.flatMap((seed) => [
        { type: 'reasoning', id: `rs_${seed}`, summary: [], encrypted_content: 'ZW5j'.repeat(50) },
        ...[0, 1].map((at) => ({
          type: 'function_call',
          call_id: `call_${seed}_${at}`,
          name: 'read_file',
          arguments: JSON.stringify(args(seed)),
        })),
        ...[0, 1].map((at) => ({
          type: 'function_call_output',
          call_id: `call_${seed}_${at}`,
          output: output(seed * 2 + at, 2000),
        })),
      ]),
    ],
    orphan: [{ type: 'function_call_output', call_id: 'call_x', output: 'x' }],
    async send(url, input) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'test', maxRetries: 0 });
      const answer = await client.responses.create({ model: 'gpt-test', input, store: false });
      return answer.output_text;
    },
  },
  {
    name: 'Anthropic',
    format: 'anthropic',
    vendor: anthropic,
    transcript: (turns) => [
      { role: 'user', content: ask },
      ...turns.flatMap((seed) => {
        const thinking = `turn ${seed}: look at part ${seed}`;
        return [
          {
            role: 'assistant',
            content: [
              { type: 'thinking', thinking, signature: anthropic.sign(thinking) },
              ...[0, 1].map((at) => ({
                type: 'tool_use',
                id: `toolu_${seed}_${at}`,
                name: 'read_file',
                input: args(seed),
              })),
            ],
          },
          {
            role: 'user',
            content: [0, 1].map((at) => ({
              type: 'tool_result',
              tool_use_id: `toolu_${seed}_${at}`,
              content: [{ type: 'text', text: output(seed * 2 + at, 2000) }],
            })),
          },
        ];
      }),
    ],
    orphan: [
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_x', content: 'x' }] },
    ],
    async send(url, messages) {
      const client = new Anthropic({ baseURL: url, apiKey: 'test', maxRetries: 0 });
      const answer = await client.messages.create({
        model: 'claude-test',
        max_tokens: 100,
        messages,
      });
      return answer.content[0].text;
    },
  },
  {
    name: 'Gemini',
    format: 'gemini',
    vendor: gemini,
    transcript: (turns) => [
      { role: 'user', parts: [{ text: ask }] },
      ...turns.flatMap((seed) => [
        {
          role: 'model',
          parts: [0, 1].map((at) => ({
            functionCall: { name: `read_${at}`, args: args(seed) },
            ...(at === 0 && { thoughtSignature: 'c2lnbmVk' }),
          })),
        },
        {
          role: 'user',
          parts: [0, 1].map((at) => ({
            functionResponse: {
              name: `read_${at}`,
              response: { output: output(seed * 2 + at, 2000) },
            },
          })),
        },
      ]),
    ],
    orphan: [
      {
        role: 'user',
        parts: [{ functionResponse: { name: 'read_x', response: { output: 'x' } } }],
      },
    ],
    async send(url, contents) {
      const client = new GoogleGenAI({ apiKey: 'test', httpOptions: { baseUrl: url } });
      const answer = await client.models.generateContent({ model: 'gemini-test', contents });
      return answer.text;
    },
  },
];

for (const { name, format, vendor, transcript, orphan, send } of vendors) {
  async function api(script) {
    const server = await serve(vendor, script);
    servers.push(server);
    return server.url;
  }

  test(`${name}: views of every size are accepted`, async () => {
    const url = await api();
    const turns = Array.from({ length: 20 }, (_, seed) => seed);
    for (const window of [2_000, 4_000, 8_000, 16_000, 128_000]) {
      for (const detected of [format, 'auto']) {
        const compactor = new Compactor({ window, format: detected });
        // Turn by turn, as an agent does.
        for (const end of turns.keys()) {
          const { messages } = await compactor.compact(transcript(turns.slice(0, end + 1)));
          assert.equal(await send(url, messages), 'Done.', `${window}, ${end}`);
        }
        const { tokens } = compactor.estimate();
        assert.ok(tokens < window, `${tokens} of ${window}`);
      }
    }
  });

  test(`${name}: a result that no call waits for is refused, and mended in the view`, async () => {
    const url = await api();
    const [ask, ...rest] = transcript([0]);
    const asked = format === 'openai-chat' ? [ask, rest.shift()] : [ask];
    const broken = [...asked, ...orphan, ...rest];
    await assert.rejects(send(url, broken));
    const { messages, repairs } = await new Compactor({ window: 64_000, format }).compact(broken);
    assert.deepEqual(
      repairs.map(({ kind }) => kind),
      ['orphan_result'],
    );
    assert.equal(await send(url, messages), 'Done.');
  });

  test(`${name}: the SDK's overflow error names the window, and the smaller view is accepted`, async () => {
    const window = 9_000;
    const url = await api([{ overflow: [window, 15_000] }]);
    const messages = transcript(Array.from({ length: 12 }, (_, seed) => seed));
    const compactor = new Compactor({ window: 200_000, format });
    const first = await compactor.compact(messages);
    assert.equal(first.compacted, false);
    const overflow = await send(url, first.messages).then(
      () => assert.fail('the server refuses it'),
      (error) => error,
    );
    const retry = await compactor.compact(messages, { overflow });
    assert.equal(retry.overflow, true);
    assert.equal(retry.window, window);
    assert.equal(retry.compacted && retry.fits, true);
    assert.equal(await send(url, retry.messages), 'Done.');
  });

  test(`${name}: an error of the server is no overflow`, async () => {
    const url = await api([{ fails: 500 }]);
    const messages = transcript([0]);
    const compactor = new Compactor({ window: 200_000, format });
    const error = await send(url, messages).then(
      () => assert.fail('the server fails'),
      (error) => error,
    );
    const result = await compactor.compact(messages, { overflow: error });
    assert.equal(result.overflow, false);
    assert.equal(result.compacted, false);
  });
}
