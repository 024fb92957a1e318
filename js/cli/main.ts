// The command line.
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { TidemarkError } from '../index.js';
import { addCheckpoint } from './checkpoint.js';
import { addCompact } from './compact.js';
import { addCompletion } from './completion.js';
import { addConfig, addStats, addStatus } from './config.js';
import { EXIT, Failure, reason } from './failure.js';
import { addInspect } from './inspect.js';
import { removeParts } from './output.js';
import { addRecall } from './recall.js';
import { addReplay } from './replay.js';
import { examples, interruption } from './run.js';
import { printable, stopProgress } from './terminal.js';
import { addValidate } from './validate.js';

function build(): Command {
  const program = new Command('tidemark')
    .description('Keeps LLM conversations inside their context window: look, compact, measure.')
    .version(version(), '-V, --version')
    .option('--json', 'print JSON instead of tables')
    .option('--color', 'colours even without a terminal')
    .option('--no-color', 'no colours')
    .option('-q, --quiet', 'no notes and no progress on standard error')
    .showSuggestionAfterError()
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      // As each command's own help begins, not as its arguments are declared.
      subcommandTerm: (command) => `${command.name()} ${command.usage()}`,
    })
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, 'tidemark: ')),
    });
  addInspect(program);
  addCompact(program);
  addReplay(program);
  addRecall(program);
  addValidate(program);
  addCheckpoint(program);
  addConfig(program);
  addStatus(program);
  addStats(program);
  addCompletion(program);
  examples(program, [
    [
      'tidemark inspect session.jsonl',
      "what fills a conversation: any API's JSON, or an agent's log",
    ],
    [
      'tidemark compact chat.json -w 200k -o view.json',
      'what to send to a model with 200,000 tokens',
    ],
    ['tidemark replay session.jsonl -w 64k --compare', 'what each preset would have cost'],
    ['tidemark compact --help', 'the options of a command, and more examples'],
  ]).addHelpText('after', WORDS);
  return program;
}

const WORDS = `
Words:
  view     the messages that are sent to the model, made from the conversation,
           which itself is never changed
  usable   the window without the reserve for the answer
  burst    one compaction: it starts when the view reaches --compact-at of
           usable, and ends at --compact-to
  marker   what stands in the view for a content that left it; recall answers it

Exit codes: 0 done, 1 done but the answer is no, 2 wrong command line, 3 unreadable
input, 4 unwritable output, 70 a fault of tidemark, 130 Ctrl-C.`;

function version(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Ctrl-C: what is half written goes, and the process with it, whatever still runs. */
function interrupted(): void {
  interruption.abort(new Failure(EXIT.interrupted, 'interrupted'));
  removeParts();
  stopProgress();
  process.exit(EXIT.interrupted);
}

/** A reader that has seen enough, such as `head`, is no failure. */
function closed(error: NodeJS.ErrnoException): void {
  removeParts();
  stopProgress();
  process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.output);
}

/** An error, which may quote what a file holds. */
function say(text: string): void {
  process.stderr.write(`tidemark: ${printable(text)}\n`);
}

function codeOf(error: unknown): number {
  if (error instanceof Failure) {
    say(error.message);
    if (error.hint) process.stderr.write(`  ${error.hint}\n`);
    return error.code;
  }
  // Commander has said what is wrong; help and version are no errors.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (TidemarkError.isInstance(error) && error.code !== 'internal') {
    say(error.message);
    return /^options|^request/.test(error.path ?? '') ? EXIT.usage : EXIT.input;
  }
  const stack = process.env.TIDEMARK_DEBUG && error instanceof Error ? error.stack : undefined;
  say(`a fault of tidemark: ${stack ?? reason(error)}`);
  return EXIT.fault;
}

process.stdout.on('error', closed);
process.stderr.on('error', closed);
process.on('SIGINT', interrupted);
process.on('SIGTERM', interrupted);
try {
  await build().parseAsync();
} catch (error) {
  stopProgress();
  removeParts();
  process.exitCode = codeOf(error);
}
