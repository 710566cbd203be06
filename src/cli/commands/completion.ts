import type { Command, Option } from 'commander'

export type Shell = 'bash' | 'zsh' | 'fish'

/** One command as a shell completes it; the program itself has no names. */
type Completed = {
  readonly names: readonly string[]
  readonly words: readonly (readonly [word: string, description: string])[]
  readonly flags: readonly Option[]
}

const completedOf = (command: Command, names: readonly string[]): readonly Completed[] => {
  const help = command.createHelp()
  const below = command.commands.filter((next) => help.visibleCommands(command).includes(next))
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices)
  const words = below.map((next) => [next.name(), next.summary() || next.description()] as const)
  const others = choices.filter((choice) => !below.some((next) => next.name() === choice))
  return [
    {
      names,
      words: [...words, ...others.map((choice) => [choice, ''] as const)],
      flags: help.visibleOptions(command),
    },
    ...below.flatMap((next) => completedOf(next, [...names, next.name()])),
  ]
}

const spellings = ({ short, long }: Option): readonly string[] =>
  [short, long].filter((flag) => flag !== undefined)

const textOfFlags = (flags: readonly Option[]): string => flags.flatMap(spellings).join(' ')

/** Texts of ours, between single quotes of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", '’')}'`

/** The command that the words before the cursor name, as `case` of bash and zsh finds it. */
const commandCases = (commands: readonly Completed[]): string =>
  commands
    .filter(({ names }) => names.length > 0)
    .map(
      ({ names }) =>
        `      ${quoted(['', ...names].join(' '))}) command=${quoted(['', ...names].join(' '))} ;;\n`,
    )
    .join('')

/** After these flags comes a value: the shell completes files. */
const valueFlags = (commands: readonly Completed[]): string => {
  const flags = commands.flatMap(({ flags }) => flags.filter(({ required }) => required).flatMap(spellings))
  return [...new Set(flags)].join('|')
}

const bash = (
  commands: readonly Completed[],
): string => `# trellis completion bash > /etc/bash_completion.d/trellis
_trellis() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command='' words='' flags='' index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$command \${COMP_WORDS[index]}" in
${commandCases(commands)}    esac
  done
  COMPREPLY=()
  case "\${COMP_WORDS[COMP_CWORD - 1]}" in
    ${valueFlags(commands)}) return ;;
  esac
  case "$command" in
${commands
  .map(({ names, words, flags }) => {
    const name = quoted(names.map((part) => ` ${part}`).join(''))
    return `    ${name}) words=${quoted(words.map(([word]) => word).join(' '))} flags=${quoted(textOfFlags(flags))} ;;\n`
  })
  .join('')}  esac
  [[ $current == -* ]] && words=$flags
  # Without a word that fits, bash completes files.
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _trellis trellis
`

const zshItem = (word: string, description: string): string =>
  quoted(`${word}:${description.replaceAll(':', ' ')}`)

const zsh = (commands: readonly Completed[]): string => `#compdef trellis
# trellis completion zsh > "\${fpath[1]}/_trellis"
_trellis() {
  local command='' word
  local -a offered flags
  for word in \${words[2,CURRENT-1]}; do
    case "$command $word" in
${commandCases(commands)}    esac
  done
  case "\${words[CURRENT-1]}" in
    (${valueFlags(commands)}) _files; return ;;
  esac
  case "$command" in
${commands
  .map(({ names, words, flags }) => {
    const name = quoted(names.map((part) => ` ${part}`).join(''))
    const offered = words.map(([word, description]) => zshItem(word, description))
    const options = flags.flatMap((flag) => spellings(flag).map((word) => zshItem(word, flag.description)))
    return `    (${name}) offered=(${offered.join(' ')}) flags=(${options.join(' ')}) ;;\n`
  })
  .join('')}  esac
  [[ "$PREFIX" == -* ]] && offered=("\${flags[@]}")
  if (( \${#offered} )); then _describe trellis offered; else _files; fi
}
if [[ "$funcstack[1]" == _trellis ]]; then _trellis "$@"; else compdef _trellis trellis; fi
`

/** The words of the command were typed, and none of a command below it. */
const fishCondition = ({ names, words }: Completed): string => {
  const seen = names.map((name) => `__fish_seen_subcommand_from ${name}`)
  const others = words.map(([word]) => word).join(' ')
  return [...seen, ...(others === '' ? [] : [`not __fish_seen_subcommand_from ${others}`])].join('; and ')
}

const fish = (commands: readonly Completed[]): string => {
  const lines = commands.flatMap((completed) => {
    const condition = `complete -c trellis -n ${quoted(fishCondition(completed))}`
    const { names, words, flags } = completed
    const hasFiles = names.length > 0 && words.length === 0 ? '' : ' -f'
    return [
      ...words.map(([word, description]) => `${condition} -f -a ${word} -d ${quoted(description)}`),
      ...flags.map(({ short, long, required, description }) =>
        [
          `${condition}${hasFiles}`,
          ...(short === undefined ? [] : [`-s ${short.slice(1)}`]),
          ...(long === undefined ? [] : [`-l ${long.slice(2)}`]),
          ...(required ? ['-r'] : []),
          `-d ${quoted(description)}`,
        ].join(' '),
      ),
    ]
  })
  return `# trellis completion fish > ~/.config/fish/completions/trellis.fish\n${lines.join('\n')}\n`
}

const scripts = { bash, zsh, fish } as const satisfies Record<Shell, unknown>

/** A script that completes the commands and options of the program in a shell. */
export const completionScript = (shell: Shell, program: Command): string =>
  scripts[shell](completedOf(program, []))
