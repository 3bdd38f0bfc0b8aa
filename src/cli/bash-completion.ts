import type { Argument, Command, Option } from 'commander';

/**
 * The kind of a word on the command line: `file`, `folder`, `any` (a text that cannot be completed), or `=` followed by
 * the words to choose from.
 */
type CompletionKind = 'file' | 'folder' | 'any' | `=${string}`;

/** A command in the completion script: its path, and the words that may follow the path. */
interface CommandCompletions {
  readonly commandPath: string;
  readonly commands: readonly string[];
  readonly options: readonly string[];
  /** The kind of each argument of the command, in order. */
  readonly arguments: readonly CompletionKind[];
}

/**
 * The placeholders of options and arguments that stand for a path, such as `<file>`. A test ensures that there are no
 * others.
 */
const FILE_PLACEHOLDERS = /^(?:file|path)$/;
const FOLDER_PLACEHOLDERS = /^(?:dir|folder)$/;

/**
 * Generates a completion script for bash from the program's commands and options. The script needs bash 4 or newer, and
 * no other package.
 */
export function bashCompletion(program: Command): string {
  const name = program.name();
  const commands = allCommands(program);
  const completions = commands.flatMap((each) => [completionsOf(each), ...helpCompletions(each)]);
  const valueBranches = commands.flatMap((each) => optionValueBranches(each));
  return `# bash completion of ${name}: made by \`${name} completion bash\`
_${name}_offer() {
  case $1 in
${completions.map(renderCaseBranch).join('\n')}
    *) commands='' options='' arguments='' ;;
  esac
}

_${name}_value() {
  case "$1 $2" in
${valueBranches.join('\n')}
    *) value='' ;;
  esac
}
${renderCompletionFunction(name)}
complete -F _${name} ${name}
`;
}

/**
 * The bash function that completes the program's command line. It reads the words before the cursor, and lists the
 * words that can come next. Only the program's name in it is variable.
 */
function renderCompletionFunction(programName: string): string {
  return `
_${programName}() {
  local current=\${COMP_WORDS[COMP_CWORD]} path=${programName} kind='' closed='' position=0 i word value
  local commands options arguments
  _${programName}_offer "$path"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -z $closed && $word == -- ]]; then
      closed=1
    elif [[ -z $closed && $word == -?* ]]; then
      _${programName}_value "$path" "$word"
      [[ -z $value ]] && continue
      # Readline takes --option=value apart at the sign.
      [[ \${COMP_WORDS[i + 1]} == '=' ]] && ((i += 1))
      ((i += 1))
      if ((i >= COMP_CWORD)); then
        kind=$value
        [[ $current == '=' ]] && current=''
      fi
    elif [[ -z $closed && " $commands " == *" $word "* ]]; then
      path+=" $word"
      _${programName}_offer "$path"
    else
      ((position += 1))
    fi
  done
  if [[ -z $kind && -z $closed && $current == -* ]]; then
    kind="=$options"
  elif [[ -z $kind && -n $commands && $position == 0 ]]; then
    kind="=$commands"
  elif [[ -z $kind ]]; then
    local IFS=';'
    local -a kinds=($arguments)
    IFS=$' \\t\\n'
    kind=\${kinds[position]:-any}
  fi
  COMPREPLY=()
  case $kind in
    file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    folder)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
    =*) mapfile -t COMPREPLY < <(compgen -W "\${kind#=}" -- "$current") ;;
  esac
}
`;
}

function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

function commandPath(command: Command): string {
  return command.parent === null ? command.name() : `${commandPath(command.parent)} ${command.name()}`;
}

function optionsWithGlobals(command: Command): Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
}

function completionsOf(command: Command): CommandCompletions {
  const visibleCommands = command.createHelp().visibleCommands(command);
  const flags = optionsWithGlobals(command).flatMap(({ long, short }) =>
    [long, short].filter((flag) => flag !== undefined),
  );
  return {
    commandPath: commandPath(command),
    commands: visibleCommands.map((each) => each.name()),
    options: [...new Set(flags)],
    arguments: command.registeredArguments.map(argumentKind),
  };
}

/** The completions after `help`: the commands that `help` explains. */
function helpCompletions(command: Command): CommandCompletions[] {
  if (command.commands.length === 0) return [];
  const commands = command.commands.map((each) => each.name());
  return [{ commandPath: `${commandPath(command)} help`, commands, options: [], arguments: [] }];
}

function renderCaseBranch({ commandPath: path, commands, options, arguments: kinds }: CommandCompletions): string {
  const quotedLists = [commands.join(' '), options.join(' '), kinds.join(';')].map(quoteForShell);
  return `    ${quoteForShell(path)}) commands=${quotedLists[0]} options=${quotedLists[1]} arguments=${quotedLists[2]} ;;`;
}

function optionValueBranches(command: Command): string[] {
  return optionsWithGlobals(command).flatMap((option) => {
    if (!option.required && !option.optional) return [];
    const flags = [option.long, option.short].filter((flag) => flag !== undefined);
    const patterns = flags.map((flag) => quoteForShell(`${commandPath(command)} ${flag}`)).join(' | ');
    return [`    ${patterns}) value=${quoteForShell(optionKind(option))} ;;`];
  });
}

function optionKind(option: Option): CompletionKind {
  return completionKindOf(option.argChoices, /[<[]([^\].>]+)/.exec(option.flags)?.[1] ?? '');
}

function argumentKind(argument: Argument): CompletionKind {
  return completionKindOf(argument.argChoices, argument.name());
}

function completionKindOf(choices: readonly string[] | undefined, placeholder: string): CompletionKind {
  if (choices !== undefined) return `=${choices.join(' ')}`;
  if (FILE_PLACEHOLDERS.test(placeholder)) return 'file';
  return FOLDER_PLACEHOLDERS.test(placeholder) ? 'folder' : 'any';
}

function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
