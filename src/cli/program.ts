import { styleText } from 'node:util'
import { Argument, Command } from 'commander'
import { type CliPorts, type End, exitCodes } from './cli-ports.ts'
import { colored } from './colors.ts'
import type { Shell } from './commands/completion.ts'
import { refuseSettings } from './options.ts'
import { addAdminCommands } from './program/admin.ts'
import { addInit } from './program/init.ts'
import type { Act, Parts } from './program/parts.ts'
import { addReaders } from './program/readers.ts'
import { addCheck, addStart } from './program/start-and-check.ts'
import { jsonText, textTable } from './texts.ts'

const shells: readonly Shell[] = ['bash', 'zsh', 'fish']

const exitTable = (): string =>
  `\nExit codes:\n${textTable(Object.values(exitCodes).map(({ code, meaning }) => [`  ${code}`, meaning]))}`

const schema = async ({ stdout }: CliPorts): Promise<End> => {
  const { configJsonSchema } = await import('../config/json-schema.ts')
  stdout.write(jsonText(configJsonSchema()))
  return 'ok'
}

const addSchema = (program: Command, { ports, act }: Parts): void => {
  program
    .command('schema')
    .summary('print the JSON Schema of the configuration')
    .description(
      'Print the JSON Schema of the configuration.\n\nFor editors: trellis schema > gateway.schema.json',
    )
    .action(() => act(() => schema(ports)))
}

const addCompletion = (program: Command, { ports, act }: Parts): void => {
  program
    .command('completion')
    .summary('print a script that completes commands and options in a shell')
    .description(
      `Print a script that completes commands and options in a shell.

bash: trellis completion bash > /etc/bash_completion.d/trellis
zsh:  trellis completion zsh > "\${fpath[1]}/_trellis"
fish: trellis completion fish > ~/.config/fish/completions/trellis.fish

For the shell at hand alone: source <(trellis completion bash)`,
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action((shell: Shell) =>
      act(async () => {
        const { completionScript } = await import('./commands/completion.ts')
        ports.stdout.write(completionScript(shell, program))
        return 'ok'
      }),
    )
}

/** The value of an option that is none, if it may be a secret, and the credential of a URL stay out of logs. */
const withoutSecrets = (text: string): string =>
  text
    .replace(/(unknown option '--[\w-]*(?:token|password|secret|key))=.*'/is, "$1'")
    .replace(/(:\/\/)[^/\s']*@/g, '$1…@')

const commandsBelow = (command: Command): readonly Command[] => [
  command,
  ...command.commands.flatMap(commandsBelow),
]

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`

/** The command line: its commands, options and help. */
export const createProgram = (ports: CliPorts, act: Act): Command => {
  const { stdout, stderr, version } = ports
  const program = new Command('trellis')
    .description('Trellis, an HTTP gateway')
    .version(version, '-v, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    // An option belongs to the command that it follows: `init --force`, and `init open --force`.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: (text, write) =>
        write(
          colored(
            stderr,
            'fault',
            withoutSecrets(text.replace(/^error: (?:command-argument value )?/, 'trellis: ')),
          ),
        ),
      getOutHasColors: () => stdout.hasColors?.() === true,
      getErrHasColors: () => stderr.hasColors?.() === true,
      getOutHelpWidth: () => stdout.columns ?? 100,
      getErrHelpWidth: () => stderr.columns ?? 100,
    })
    .configureHelp({
      styleTitle: (text) => styleText('bold', text, { validateStream: false }),
      styleCommandText: (text) => styleText('cyan', text, { validateStream: false }),
      styleSubcommandText: (text) => styleText('cyan', text, { validateStream: false }),
      styleOptionText: (text) => styleText('cyan', text, { validateStream: false }),
    })
    .addHelpText('after', exitTable)
  const parts = { ports, act }
  addStart(program, parts)
  addCheck(program, parts)
  addInit(program, parts)
  addReaders(program, parts)
  addAdminCommands(program, parts)
  addSchema(program, parts)
  addCompletion(program, parts)
  program.command('version', { hidden: true }).action(() =>
    act(async () => {
      stdout.write(`${version}\n`)
      return 'ok'
    }),
  )
  for (const command of commandsBelow(program)) {
    command.showHelpAfterError(`Try: ${pathOf(command)} --help`)
    // Not of the program itself, whose options commander takes anywhere: the message would name another help.
    if (command !== program) refuseSettings(command)
  }
  return program
}
