// tidemark as a policy, and no policy at all.
import { Compactor, type CompactorOptions, type CompactRequest } from '../compactor.js';
import type { ChatMessage } from '../types.js';
import type { Policy, Turn } from './replay.js';

/** Sends the whole transcript, whatever its size. */
export const whole: Policy = (messages) => ({ messages });

/**
 * A compactor with these options as the policy of one session. Usage goes in as the replay
 * measures it, and summarizer calls are priced.
 * @param beside the tools and instructions that go with every request
 */
export function compactor(
  options: CompactorOptions,
  beside: Pick<CompactRequest, 'tools' | 'system'> = {},
): Policy {
  const { summarizer } = options;
  let turn: Turn | undefined;
  const own = new Compactor({
    ...options,
    ...(summarizer && {
      summarizer: async (request, context) => {
        const text = await summarizer(request, context);
        const { messages, system, prompt } = request;
        if (messages) {
          const live = [...(messages as ChatMessage[]), { role: 'user', content: prompt }];
          turn?.asked(live, text ?? '', added());
        } else {
          turn?.asked(asMessages(system, prompt), text ?? '');
        }
        return text;
      },
    }),
  });
  const added = () => {
    const tool = own.recallTool();
    return tool ? [tool] : [];
  };
  return async (messages, now) => {
    turn = now;
    const start = performance.now();
    const { messages: view } = await own.compact(messages, { ...beside, usage: now.usage });
    const milliseconds = performance.now() - start;
    const tools = added();
    return {
      messages: view,
      tools,
      recalls: async (identifier) => tools.length > 0 && holds(own, identifier),
      milliseconds,
    };
  };
}

/** Whether a search through the recall tool finds the identifier. */
async function holds(own: Compactor, identifier: string): Promise<boolean> {
  const answer = await own.recall({ pattern: identifier });
  // The first line repeats the pattern.
  const found = answer.slice(answer.indexOf('\n') + 1).toLowerCase();
  return answer.includes('\n') && found.includes(identifier.toLowerCase());
}

function asMessages(system: string, prompt: string): ChatMessage[] {
  return [
    { role: 'system', content: system },
    { role: 'user', content: prompt },
  ];
}
