// Views of AI SDK conversations through versions 5 to 7 of the package itself, its schemas and its
// providers, to servers that check what arrives as the vendors do.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import * as ai5 from 'ai5';
import * as ai6 from 'ai6';
import * as ai7 from 'ai7';
import { createAnthropic as anthropic5 } from 'anthropic5';
import { createAnthropic as anthropic6 } from 'anthropic6';
import { createAnthropic as anthropic7 } from 'anthropic7';
import { createGoogleGenerativeAI as google7 } from 'google7';
import { createOpenAI as openai5 } from 'openai5';
import { createOpenAI as openai6 } from 'openai6';
import { createOpenAI as openai7 } from 'openai7';
import { Compactor } from '../../pkg/index.js';
import { middleware, prepareStep, recallTools } from '../../pkg/integrations/ai-sdk.js';
import { frozen, output } from '../js/chat.mjs';
import { agent } from './conversation.mjs';
import { serve } from './server.mjs';
import * as anthropic from './vendors/anthropic.mjs';
import * as gemini from './vendors/gemini.mjs';
import * as openaiChat from './vendors/openai-chat.mjs';
import * as openaiResponses from './vendors/openai-responses.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const servers = [];
after(() => Promise.all(servers.map((server) => server.close())));

async function api(vendor, script) {
  const server = await serve(vendor, script);
  servers.push(server);
  return server;
}

const apiKey = 'test';
const versions = [
  { name: 'ai 5', ai: ai5, anthropic: anthropic5, openai: openai5 },
  { name: 'ai 6', ai: ai6, anthropic: anthropic6, openai: openai6 },
  { name: 'ai 7', ai: ai7, anthropic: anthropic7, openai: openai7 },
];

/** Each version with each of its providers: the server's rules, and the model. */
const routes = versions.flatMap(({ name, ai, anthropic: claude, openai }) => [
  {
    name: `${name}, Anthropic`,
    ai,
    vendor: anthropic,
    model: (url) => claude({ baseURL: `${url}/v1`, apiKey })('claude-test'),
  },
  {
    name: `${name}, OpenAI Chat`,
    ai,
    vendor: openaiChat,
    model: (url) => openai({ baseURL: `${url}/v1`, apiKey }).chat('gpt-test'),
  },
  {
    name: `${name}, OpenAI Responses`,
    ai,
    vendor: openaiResponses,
    model: (url) => openai({ baseURL: `${url}/v1`, apiKey }).responses('gpt-test'),
  },
]);
routes.push({
  name: 'ai 7, Gemini',
  ai: ai7,
  vendor: gemini,
  model: (url) => google7({ baseURL: `${url}/v1beta`, apiKey })('gemini-test'),
});

const ask = { system: 'You are careful.', maxOutputTokens: 100, maxRetries: 0 };

for (const { name, ai, vendor, model } of routes) {
  test(`${name}: views of every size are accepted`, async () => {
    const server = await api(vendor);
    const messages = frozen(agent(12).slice(0, -2));
    for (const window of [2_000, 4_000, 8_000, 16_000, 128_000]) {
      const compactor = new Compactor({ window, format: 'ai-sdk' });
      const result = await compactor.compact(messages);
      assert.equal(result.compacted, window < 32_000, `${window}`);
      for (const message of result.messages) ai.modelMessageSchema.parse(message);
      const { text } = await ai.generateText({
        ...ask,
        model: model(server.url),
        messages: result.messages,
      });
      assert.equal(text, 'Done.', `${window}`);
    }
  });

  test(`${name}: a view with an orphan is refused`, async () => {
    const server = await api(vendor);
    const [, ...orphaned] = agent(2).filter((message) => message.role !== 'assistant');
    const messages = [{ role: 'user', content: 'Go on.' }, ...orphaned];
    await assert.rejects(ai.generateText({ ...ask, model: model(server.url), messages }));
  });
}

for (const { name, ai, vendor, model } of routes) {
  test(`${name}: prepareStep keeps a long tool loop inside the window`, async () => {
    const steps = Array.from({ length: 12 }, (_, seed) => ({
      calls: [
        { id: `call_${seed}_a`, name: 'read_file', input: { path: `a-${seed}` } },
        { id: `call_${seed}_b`, name: 'read_file', input: { path: `b-${seed}` } },
      ],
    }));
    const server = await api(vendor, steps);
    const compactor = new Compactor({ window: 8_000, format: 'ai-sdk' });
    const sizes = [];
    compactor.on('burst:after', ({ outcome }) => sizes.push(outcome.tokensAfter));
    let calls = 0;
    const tools = {
      read_file: ai.tool({
        description: 'Reads a file.',
        inputSchema: ai.jsonSchema({ type: 'object', properties: { path: { type: 'string' } } }),
        execute: async () => output(calls++, 4000),
      }),
    };
    const result = await ai.generateText({
      ...ask,
      model: model(server.url),
      messages: [{ role: 'user', content: 'Read everything.' }],
      tools,
      stopWhen: ai.stepCountIs(20),
      prepareStep: prepareStep(compactor),
    });
    assert.equal(result.text, 'Done.');
    assert.equal(result.steps.length, 13);
    assert.ok(sizes.length >= 2, `${sizes.length} bursts`);
    // Without it the last request would hold all 24 results.
    const last = JSON.stringify(server.requests.at(-1)).length;
    assert.ok(last < 24 * 4000 * 0.4, `${last}`);
    // The whole transcript is known, also where a version hands the view back.
    assert.match(await compactor.recall({ pattern: '0:1: checked' }), /checked src/);
    const { tokens } = compactor.estimate();
    assert.ok(tokens < 8_000);
  });

  test(`${name}: the middleware compacts every call, and answers an overflow`, async () => {
    const server = await api(vendor, [{}, { overflow: [6_000, 7_500] }]);
    const compactor = new Compactor({ window: 128_000, format: 'ai-sdk' });
    const wrapped = ai.wrapLanguageModel({
      model: model(server.url),
      middleware: middleware(compactor),
    });
    const messages = frozen(agent(9));
    const first = await ai.generateText({ ...ask, model: wrapped, messages: messages.slice(0, 3) });
    assert.equal(first.text, 'Done.');
    const second = await ai.generateText({ ...ask, model: wrapped, messages });
    assert.equal(second.text, 'Done.');
    assert.equal(server.requests.length, 3, 'refused once, then sent smaller');
    const [, refused, sent] = server.requests.map((request) => JSON.stringify(request).length);
    assert.ok(sent < refused / 2, `${sent} of ${refused}`);
    assert.equal(compactor.estimate().window, 6_000);
  });
}

for (const { name, ai, openai } of versions) {
  test(`${name}: an error that is no overflow comes through the middleware as it is`, async () => {
    const server = await api(openaiChat, [{ fails: 500 }]);
    const wrapped = ai.wrapLanguageModel({
      model: openai({ baseURL: `${server.url}/v1`, apiKey }).chat('gpt-test'),
      middleware: middleware(new Compactor({ window: 8_000, format: 'ai-sdk' })),
    });
    const request = ai.generateText({ ...ask, model: wrapped, prompt: 'hi' });
    await assert.rejects(request, (error) => error.statusCode === 500);
    assert.equal(server.requests.length, 1);
  });

  test(`${name}: a stream that was refused as too long is sent again, and its usage is learned`, async () => {
    const server = await api(openaiChat, [{ overflow: [6_000, 7_500] }, { tokens: 3_210 }]);
    const compactor = new Compactor({ window: 128_000, format: 'ai-sdk' });
    const wrapped = ai.wrapLanguageModel({
      model: openai({ baseURL: `${server.url}/v1`, apiKey }).chat('gpt-test'),
      middleware: middleware(compactor),
    });
    const result = ai.streamText({ ...ask, model: wrapped, messages: agent(9) });
    assert.equal(await result.text, 'Done.');
    assert.equal(server.requests.length, 2);
    const before = compactor.estimate().ratio;
    const next = [
      ...agent(9),
      ...(await result.response).messages,
      { role: 'user', content: 'And?' },
    ];
    assert.equal(await ai.streamText({ ...ask, model: wrapped, messages: next }).text, 'Done.');
    assert.notEqual(compactor.estimate().ratio, before);
  });

  test(`${name}: the recall tool answers with what left the view`, async () => {
    const compactor = new Compactor({ window: 4_000, format: 'ai-sdk' });
    assert.deepEqual(recallTools(compactor, ai.jsonSchema), {});
    const { messages } = await compactor.compact(agent(8));
    const call = { id: 'call_recall', name: 'recall', input: { pattern: 'src/part-0.rs' } };
    const server = await api(openaiChat, [{ calls: [call] }]);
    const result = await ai.generateText({
      ...ask,
      model: openai({ baseURL: `${server.url}/v1`, apiKey }).chat('gpt-test'),
      messages,
      tools: recallTools(compactor, ai.jsonSchema),
      stopWhen: ai.stepCountIs(3),
    });
    assert.equal(result.text, 'Done.');
    assert.deepEqual(
      server.requests[0].tools.map((tool) => tool.function.name),
      ['recall'],
    );
    assert.match(server.requests[1].messages.at(-1).content, /src\/part-0\.rs/);
  });
}

/** What asks for approval, and an answer to it. */
const asked = (approvalId, toolCallId) => ({
  type: 'tool-approval-request',
  approvalId,
  toolCallId,
});
const approved = (approvalId) => ({ type: 'tool-approval-response', approvalId, approved: true });

for (const { name, ai, anthropic: claude } of versions.slice(1)) {
  test(`${name}: approvals follow their calls, and halves of them are left out`, async () => {
    const call = (path) => ({
      type: 'tool-call',
      toolCallId: 'twice',
      toolName: 'read_file',
      input: { path },
    });
    const lost = [
      { role: 'user', content: 'Read both.' },
      { role: 'assistant', content: [{ type: 'text', text: 'Well.' }, asked('a0', 'lost')] },
      { role: 'user', content: 'Go on.' },
      { role: 'assistant', content: [call('a'), asked('a1', 'twice')] },
      { role: 'tool', content: [approved('a9'), approved('a1')] },
    ];
    const twice = [
      { role: 'user', content: 'Read both.' },
      {
        role: 'assistant',
        content: [call('a'), asked('a1', 'twice'), call('b'), asked('a2', 'twice')],
      },
      { role: 'tool', content: [approved('a1'), approved('a2')] },
    ];
    const run = async (messages) => {
      const server = await api(anthropic);
      const read = [];
      const tools = {
        read_file: ai.tool({
          inputSchema: ai.jsonSchema({ type: 'object', properties: { path: { type: 'string' } } }),
          // Version 7 asks the call again, which version 6 does the tool.
          needsApproval: true,
          execute: async ({ path }) => {
            read.push(path);
            return path;
          },
        }),
      };
      const model = claude({ baseURL: `${server.url}/v1`, apiKey })('claude-test');
      const { text } = await ai.generateText({
        ...ask,
        model,
        messages,
        tools,
        toolApproval: { read_file: 'user-approval' },
      });
      return { text, read };
    };
    await assert.rejects(run(lost), { name: 'AI_InvalidToolApprovalError' });
    for (const [messages, paths] of [
      [lost, ['a']],
      [twice, ['a', 'b']],
    ]) {
      const compactor = new Compactor({ window: 64_000, format: 'ai-sdk' });
      const { messages: view } = await compactor.compact(frozen(messages));
      const { text, read } = await run(view);
      assert.equal(text, 'Done.');
      assert.deepEqual(read.sort(), paths);
    }
  });
}

test('binary data is in the view as the very same object, however deep it stands', async () => {
  const bytes = [new Uint8Array(3), Buffer.from('abc'), new ArrayBuffer(8), new Uint8Array(5)];
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'look' },
        { type: 'image', image: bytes[0] },
        { type: 'file', mediaType: 'application/pdf', data: { type: 'data', data: bytes[1] } },
        { type: 'image', image: new URL('https://example.com/a.png') },
      ],
    },
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'shoot', input: {} }],
    },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'c',
          toolName: 'shoot',
          output: {
            type: 'content',
            value: [
              { type: 'text', text: 'seen' },
              { type: 'file', mediaType: 'image/png', data: { type: 'data', data: bytes[2] } },
              { type: 'media', mediaType: 'image/png', data: bytes[3] },
            ],
          },
        },
      ],
    },
    { role: 'user', content: 'and?' },
  ];
  const compactor = new Compactor({ window: 64_000, format: 'ai-sdk' });
  const { messages: view } = await compactor.compact(messages);
  for (const [at, message] of view.entries()) assert.equal(message, messages[at]);
  // A payload is priced, not counted as text.
  const large = [
    {
      role: 'user',
      content: [{ type: 'file', mediaType: 'image/png', data: new Uint8Array(5e6) }],
    },
  ];
  const sized = new Compactor({ window: 16_000, format: 'ai-sdk' });
  await sized.compact(large);
  assert.ok(sized.estimate().tokens < 3_000);
  // Where a text beside it is replaced, the data stays the same object.
  const long = structuredClone(messages[0]);
  long.content[1].image = bytes[0];
  long.content[0].text = 'word '.repeat(20_000);
  const cut = new Compactor({ window: 8_000, format: 'ai-sdk' });
  const { messages: elided, fits } = await cut.compact([long]);
  assert.equal(fits, true);
  assert.notEqual(elided[0], long);
  assert.equal(elided[0].content[1].image, bytes[0]);
});

test('the middleware names the option that a compactor of another format lacks', async () => {
  const { transformParams } = middleware(new Compactor({ window: 2_000, format: 'openai-chat' }));
  const prompt = Array.from({ length: 40 }, (_, at) => ({
    role: at % 2 ? 'assistant' : 'user',
    content: [{ type: 'text', text: output(at, 500) }],
  }));
  await assert.rejects(transformParams({ params: { prompt } }), { path: 'options.format' });
});
