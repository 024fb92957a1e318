// tidemark recall: what left the view.
import type { Command } from 'commander';
import { engineFlags } from './compact.js';
import { compactInput, compactorFor } from './conversation.js';
import { EXIT, Failure } from './failure.js';
import { action, examples, open, type Run } from './run.js';
import { requireWindow } from './settings.js';
import { printable } from './terminal.js';

export function addRecall(program: Command): void {
  const command = engineFlags(
    program
      .command('recall')
      .description('answer a call of the recall tool: bring back what left the view')
      .argument('<file>', 'the whole conversation; - is stdin')
      .argument('[ref]', 'reference that a marker shows'),
  )
    .option('--pattern <text>', 'text to look for; without a reference in all messages')
    .option('--offset <number>', 'first character of the page, or first match')
    .option('--limit <number>', 'characters of the page')
    .option('--args <json>', 'the arguments as the model wrote them')
    .option('--checkpoint <file>', 'the decisions, as compact --checkpoint keeps them')
    .action(action(recall));
  examples(command, [
    [
      'tidemark recall chat.json 3f9a2c81 --checkpoint chat.checkpoint',
      'the content behind a marker',
    ],
    ['tidemark recall chat.json --pattern ENOENT -w 32k', 'search everything'],
    [
      'tidemark recall chat.json --args "$ARGUMENTS" --checkpoint chat.checkpoint',
      "run the model's own call",
    ],
  ]);
}

async function recall(run: Run, path: string, ref: string | undefined): Promise<number> {
  const { terminal, options, config } = run;
  const { pattern, offset, limit, args, checkpoint } = options;
  if (ref === undefined && pattern === undefined && args === undefined) {
    throw new Failure(EXIT.usage, 'recall: give a reference, --pattern or --args');
  }
  if (checkpoint === undefined) requireWindow(config);
  const input = await open(run, path);
  const compactor = await compactorFor({ ...run, options: { ...options, recall: true } }, input);
  const again = checkpoint !== undefined;
  // From a checkpoint nothing new is decided: the transcript is only brought.
  await compactInput(compactor, input, { ...run, options: { dryRun: again } });
  const wanted =
    args !== undefined
      ? String(args)
      : {
          ...(ref !== undefined && { ref }),
          ...(pattern !== undefined && { pattern: String(pattern) }),
          ...(offset !== undefined && { offset: Number(offset) }),
          ...(limit !== undefined && { limit: Number(limit) }),
        };
  const text = await compactor.recall(wanted);
  if (terminal.json) terminal.answer({ file: input.name, text });
  else terminal.print(process.stdout.isTTY ? printable(text) : text);
  return EXIT.ok;
}
