// Recorded answers of providers, turned into model messages by the AI SDK: views of them through
// its schemas and its Anthropic provider.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import * as ai from 'ai7';
import { createAnthropic } from 'anthropic7';
import { Compactor } from '../../pkg/index.js';
import { conversation } from './recorded.mjs';
import { serve } from './server.mjs';
import * as anthropic from './vendors/anthropic.mjs';

const server = await serve(anthropic);
after(() => server.close());
const model = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: 'test' })('claude-test');

/** Replays a conversation turn by turn, at windows that are too small for it and one that is not. */
async function replay(messages) {
  for (const part of messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))) {
    const signature = part.providerOptions?.anthropic?.signature;
    if (part.type === 'reasoning' && signature) anthropic.trust(part.text, signature);
  }
  for (const window of [1_500, 4_000, 64_000]) {
    const compactor = new Compactor({ window, format: 'ai-sdk' });
    for (const [at, { role }] of messages.entries()) {
      if (role !== 'user') continue;
      const { messages: view } = await compactor.compact(messages.slice(0, at + 1));
      for (const message of view) ai.modelMessageSchema.parse(message);
      const answer = await ai.generateText({ model, messages: view, maxRetries: 0 });
      assert.equal(answer.text, 'Done.', `${window}, ${at}`);
    }
  }
}

const read = (url) => JSON.parse(readFileSync(url, 'utf8'));
const thanks = { role: 'user', content: 'Thanks.' };

for (const name of ['anthropic', 'openai', 'langgraph']) {
  test(`views of the conversation ${name} are accepted`, async () => {
    await replay([...read(new URL(`../data/ai_sdk/${name}.json`, import.meta.url)), thanks]);
  });
}

// All that there is, on machines that have it.
const shared = new URL('../../../shared/data/vercel_ai/', import.meta.url);
if (existsSync(shared)) {
  test('views of every recorded answer are accepted, in one long conversation', async () => {
    // No answers of chat models, and answers that go on from another.
    const other = /^derived_|^langchain_|google-search|deferred/;
    const names = readdirSync(shared).filter((name) => /json$/.test(name) && !other.test(name));
    const answers = names.map((name) => read(new URL(name, shared)));
    const messages = await conversation(answers);
    assert.ok(messages.length > 50, `${messages.length}`);
    await replay([...messages, thanks]);
  });
}
