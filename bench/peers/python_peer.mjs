// A policy that runs in a Python process. One JSON text per line each way:
//   to it:   {"messages": those new since the last call, "usage": tokens of the last request}
//   from it: {"ask": messages of a summary request}, answered by {"text": the summary};
//            then {"view": messages, "tools": schemas, "milliseconds": CPU time}
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { summarize } from './summarizer.mjs';

/** Starts a driver; `close` ends it. */
export function pythonPeer(python, file, args, recalls) {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = spawn(python, [path, ...args.map(String)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const hear = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${file} ended`);
    return JSON.parse(value);
  };
  const tell = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  let known = 0;
  const policy = async (messages, { usage, asked }) => {
    tell({ messages: messages.slice(known), usage });
    known = messages.length;
    let reply = await hear();
    while (reply.ask) {
      const prompt = reply.ask.at(-1).content;
      const text = summarize(prompt);
      asked(reply.ask, text);
      tell({ text });
      reply = await hear();
    }
    const { view, tools, milliseconds } = reply;
    return {
      messages: view,
      tools,
      milliseconds,
      recalls: recalls && ((identifier) => recalls(identifier, view, messages)),
    };
  };
  return { policy, close: () => child.stdin.end() };
}
