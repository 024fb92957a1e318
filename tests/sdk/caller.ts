// A strict TypeScript user of the integration, with each version of the package `ai`.
import * as ai5 from 'ai5';
import * as ai6 from 'ai6';
import * as ai7 from 'ai7';
import { Compactor } from '../../pkg/index.js';
import { middleware, prepareStep, recallTools } from '../../pkg/integrations/ai-sdk.js';

export async function five(
  model: Exclude<ai5.LanguageModel, string>,
  messages: ai5.ModelMessage[],
) {
  const compactor = new Compactor<ai5.ModelMessage>({ window: 8000, format: 'ai-sdk' });
  const wrapped = ai5.wrapLanguageModel({ model, middleware: middleware(new Compactor()) });
  return ai5.generateText({
    model: wrapped,
    messages: (await compactor.compact(messages)).messages,
    tools: recallTools(compactor, ai5.jsonSchema<object>),
    prepareStep: prepareStep(compactor),
  });
}

export async function six(
  model: Parameters<typeof ai6.wrapLanguageModel>[0]['model'],
  messages: ai6.ModelMessage[],
) {
  const compactor = new Compactor<ai6.ModelMessage>({ window: 8000, format: 'ai-sdk' });
  const wrapped = ai6.wrapLanguageModel({ model, middleware: middleware(new Compactor()) });
  return ai6.generateText({
    model: wrapped,
    messages: (await compactor.compact(messages)).messages,
    tools: recallTools(compactor, ai6.jsonSchema<object>),
    prepareStep: prepareStep(compactor),
  });
}

export async function seven(
  model: Parameters<typeof ai7.wrapLanguageModel>[0]['model'],
  messages: ai7.ModelMessage[],
) {
  const compactor = new Compactor<ai7.ModelMessage>({ window: 8000, format: 'ai-sdk' });
  const wrapped = ai7.wrapLanguageModel({ model, middleware: middleware(new Compactor()) });
  return ai7.generateText({
    model: wrapped,
    messages: (await compactor.compact(messages)).messages,
    tools: recallTools(compactor, ai7.jsonSchema<object>),
    prepareStep: prepareStep(compactor),
  });
}
