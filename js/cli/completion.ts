// tidemark completion: scripts for shells, and what they ask for. The scripts fall back on the
// names of files, which most arguments are.
import { Argument, type Command, Option } from 'commander';
import { action, examples, type Run } from './run.js';

const BASH = `# tidemark in bash: source <(tidemark completion bash)
_tidemark() {
  local line
  local -a found=()
  while IFS= read -r line; do
    found+=("\${line%%$'\\t'*}")
  done < <(tidemark complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "\${found[*]}" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _tidemark tidemark
`;

const ZSH = `#compdef tidemark
# tidemark in zsh: source <(tidemark completion zsh)
_tidemark() {
  local line
  local -a found
  for line in "\${(@f)$(tidemark complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#found )); then _describe tidemark found; else _files; fi
}
compdef _tidemark tidemark
`;

const FISH = `# tidemark in fish: tidemark completion fish > ~/.config/fish/completions/tidemark.fish
function __tidemark_complete
  set -l words (commandline -opc)
  tidemark complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c tidemark -f -n __fish_use_subcommand -a '(__tidemark_complete)'
complete -c tidemark -n 'not __fish_use_subcommand' -a '(__tidemark_complete)'
`;

const SCRIPTS: Record<string, string> = { bash: BASH, zsh: ZSH, fish: FISH };

export function addCompletion(program: Command): void {
  const command = program
    .command('completion')
    .description('print a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>').choices(Object.keys(SCRIPTS)))
    .action(
      action(({ terminal }: Run, shell: string) => {
        terminal.print((SCRIPTS[shell] ?? '').trimEnd());
        return undefined;
      }),
    );
  examples(command, [
    ['source <(tidemark completion bash)', 'in ~/.bashrc'],
    ['source <(tidemark completion zsh)', 'in ~/.zshrc, after compinit'],
    ['tidemark completion fish > ~/.config/fish/completions/tidemark.fish', 'once'],
  ]);
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => {
      for (const [word, about] of suggestions(program, words)) {
        process.stdout.write(`${word}\t${about}\n`);
      }
    });
}

/** What may stand for the last word, which may be begun; nothing where a file is meant. */
function suggestions(program: Command, words: readonly string[]): [string, string][] {
  let command = program;
  let place = 0;
  let waiting: Option | undefined;
  for (const word of words.slice(0, -1)) {
    if (waiting) {
      waiting = undefined;
      continue;
    }
    if (word.startsWith('-')) {
      const option = optionsOf(command).find((one) => one.long === word || one.short === word);
      waiting = option && (option.required || option.optional) ? option : undefined;
      continue;
    }
    const inner = command.commands.find((one) => one.name() === word);
    if (inner) command = inner;
    else place += 1;
  }
  const begun = words.at(-1) ?? '';
  const starting = (list: readonly (readonly [string, string])[]) =>
    list
      .filter(([word]) => word.startsWith(begun))
      .map(([word, about]) => [word, about] as [string, string]);
  const choices = (list: readonly string[] | undefined) =>
    starting((list ?? []).map((word) => [word, ''] as const));
  if (waiting) return choices(waiting.argChoices);
  if (begun.startsWith('-')) {
    return starting(
      optionsOf(command).map(({ long, description }) => [long ?? '', description] as const),
    );
  }
  if (command.commands.length > 0) {
    const visible = command.createHelp().visibleCommands(command);
    return starting(visible.map((one) => [one.name(), one.description()] as const));
  }
  return choices(command.registeredArguments[place]?.argChoices);
}

function optionsOf(command: Command): Option[] {
  const above = command.parent ? optionsOf(command.parent) : [];
  const help = new Option('-h, --help', 'display help for command');
  return [...command.options, ...above, ...(command.parent ? [] : [help])];
}
