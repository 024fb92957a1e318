// tidemark validate: what a provider would refuse.
import type { Command } from 'commander';
import { type Problem, Session } from '../index.js';
import { EXIT } from './failure.js';
import { type Input, isLarge, located, pieces, type ReadOptions } from './input.js';
import { problemLines } from './inspect.js';
import { action, choice, examples, open, type Run, warnOf } from './run.js';
import { CHOICES } from './settings.js';
import { plural } from './terminal.js';

export function addValidate(program: Command): void {
  const command = program
    .command('validate')
    .description('find what a provider would refuse; exit code 1 if there is anything')
    .argument('<file>', 'a conversation; - is stdin')
    .addOption(choice('--format <name>', 'wire format, where it is not found out', CHOICES.format))
    .action(action(validate));
  examples(command, [
    [
      'tidemark validate chat.json',
      'orphaned results, unanswered calls, duplicate ids, empty messages',
    ],
    ['tidemark validate request.json --json | jq ".problems[].index"', 'the messages concerned'],
    ['tidemark validate chat.jsonl -q && ./send.sh', 'in a script'],
  ]);
}

async function validate(run: Run, path: string): Promise<number> {
  const { terminal } = run;
  const problems: Problem[] = [];
  let messages = 0;
  let warnings = 0;
  const look = (input: Input) => {
    for (const problem of problemsOf(input)) {
      problems.push({ ...problem, index: problem.index + messages });
    }
    messages += input.messages.length;
    warnings += input.warnings.length;
  };
  let name = path;
  if (await isLarge(path)) {
    const format = run.config.values.format as ReadOptions['format'];
    for await (const piece of pieces(path, { format, signal: run.signal })) {
      warnOf(run, piece);
      look(piece);
    }
  } else {
    const input = await open(run, path);
    name = input.name;
    look(input);
  }
  if (terminal.json) terminal.answer({ file: name, messages, problems, unreadable: warnings });
  else if (problems.length === 0) terminal.print(`${plural(messages, 'message')}: no problems`);
  else {
    terminal.print(`${plural(messages, 'message')}: ${plural(problems.length, 'problem')}`);
    for (const line of problemLines(terminal, problems)) terminal.print(line);
  }
  return problems.length > 0 || warnings > 0 ? EXIT.negative : EXIT.ok;
}

function problemsOf(input: Input): Problem[] {
  const session = new Session<object>({ format: input.format });
  try {
    if (input.body) session.planBody(input.body, { dryRun: true });
    else session.sync(input.messages);
    return session.problems();
  } catch (error) {
    throw located(input, error);
  } finally {
    session.dispose();
  }
}
