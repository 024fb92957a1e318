// What the samples of the READMEs leave to their reader, with the types of the openai package as
// far as they bear on tidemark: package.test.mjs compiles and runs the samples on top of it.

interface TextPart {
  type: 'text';
  text: string;
}

interface ImagePart {
  type: 'image_url';
  image_url: { url: string; detail?: 'auto' | 'low' | 'high' };
}

interface RefusalPart {
  type: 'refusal';
  refusal: string;
}

type ToolCall =
  | { id: string; type: 'function'; function: { name: string; arguments: string } }
  | { id: string; type: 'custom'; custom: { name: string; input: string } };

/** `ChatCompletionMessageParam`. */
export type Message =
  | { role: 'developer'; content: string | TextPart[]; name?: string }
  | { role: 'system'; content: string | TextPart[]; name?: string }
  | { role: 'user'; content: string | (TextPart | ImagePart)[]; name?: string }
  | {
      role: 'assistant';
      content?: string | (TextPart | RefusalPart)[] | null;
      refusal?: string | null;
      name?: string;
      audio?: { id: string } | null;
      function_call?: { name: string; arguments: string } | null;
      tool_calls?: ToolCall[];
    }
  | { role: 'tool'; content: string | TextPart[]; tool_call_id: string }
  | { role: 'function'; content: string | null; name: string };

/** `ChatCompletionTool`. */
export type Tool =
  | {
      type: 'function';
      function: {
        name: string;
        description?: string;
        parameters?: { [key: string]: unknown };
        strict?: boolean | null;
      };
    }
  | { type: 'custom'; custom: { name: string; description?: string } };

/** `ChatCompletion`. */
export interface Completion {
  choices: { message: { role: 'assistant'; content: string | null; refusal: string | null } }[];
  usage?: {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    prompt_tokens_details?: { cached_tokens?: number };
  };
}

export interface Request {
  model: string;
  messages: Message[];
  tools?: Tool[];
  stream?: false | null;
}

export const model = 'a-model';

/** Stands for a real tokenizer: only that it is asked matters here. */
export const tokenizer = { encode: (text: string): string[] => text.split(' ') };
export const tools: Tool[] = [
  { type: 'function', function: { name: 'read_file', parameters: { type: 'object' } } },
];
export const options = { window: 128_000 };
export const call = {
  id: 'call_recall',
  type: 'function' as const,
  function: { name: 'recall', arguments: '{"pattern":"needle"}' },
};

/** About 150,000 tokens: more than the window of the samples. It ends with the call above. */
export const transcript: Message[] = [
  { role: 'system', content: 'You are terse.' },
  { role: 'user', content: 'Find the needle.' },
];
for (let at = 0; at < 60; at++) {
  const id = `call_${at}`;
  const called = { name: 'read_file', arguments: `{"path":"part-${at}"}` };
  transcript.push(
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: called }],
    },
    { role: 'tool', tool_call_id: id, content: `needle ${at} in the hay\n`.repeat(400) },
  );
}
transcript.push({ role: 'assistant', content: null, tool_calls: [call] });

/** Every request that a sample sent. */
export const requests: Request[] = [];
/** Requests to let through before one is refused as too long; then all are let through. */
const refuse = { after: 1 };

export const openai = {
  chat: {
    completions: {
      async create(request: Request): Promise<Completion> {
        requests.push(request);
        if (refuse.after-- === 0) {
          const message = "This model's maximum context length is 64000 tokens.";
          throw Object.assign(new Error(message), { status: 400, error: { message } });
        }
        const message = { role: 'assistant' as const, content: 'Here.', refusal: null };
        return { choices: [{ message }] };
      },
    },
  },
};

/** As the openai package has it, the text may be null. */
export async function callModel(
  system: string,
  prompt: string,
  maxTokens: number,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  signal?.throwIfAborted();
  return system.length + prompt.length + maxTokens > 0 ? null : '';
}

export function summarize(_system: string, prompt: string, maxTokens: number): string {
  return prompt.slice(0, maxTokens);
}

const saved: string[] = [];
export async function save(checkpoint: string): Promise<void> {
  saved.push(checkpoint);
}
export async function load(): Promise<string> {
  return saved.at(-1) ?? '';
}

/** Views of the sample that drives the loop itself. */
export const sent: Message[][] = [];
export function send(messages: Message[]): void {
  sent.push(messages);
}
