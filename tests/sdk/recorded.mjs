// Answers of providers, as the package vercel/ai records them, turned into model messages by the
// AI SDK itself.
import * as ai from 'ai7';
import { createAnthropic } from 'anthropic7';
import { createOpenAI } from 'openai7';

globalThis.AI_SDK_LOG_WARNINGS = false;

/** The messages that a recorded answer becomes; none where it is of another kind. */
export async function modelMessages(answer) {
  const fetch = async () => Response.json(answer);
  const options = { apiKey: 'test', fetch };
  let model;
  if (answer.type === 'message') model = createAnthropic(options)('claude-test');
  else if (answer.object === 'response') model = createOpenAI(options).responses('gpt-5');
  else if (Array.isArray(answer.choices)) model = createOpenAI(options).chat('gpt-5');
  else return [];
  const { response } = await ai.generateText({ model, prompt: 'hi', maxRetries: 0 });
  return response.messages;
}

/** A conversation of recorded answers: the user asks for each, and calls get results. */
export async function conversation(answers) {
  const messages = [];
  for (const [at, answer] of answers.entries()) {
    const said = await modelMessages(answer);
    if (said.length === 0) continue;
    messages.push({ role: 'user', content: `Question ${at}.` }, ...said);
  }
  return JSON.parse(JSON.stringify(messages));
}
