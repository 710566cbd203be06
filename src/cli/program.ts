import { Command } from 'commander'
import { type CliPorts, type End, exitCodes } from './cli-ports.ts'
import { refuseSettings } from './options.ts'
import { addAdminCommands } from './program/admin.ts'
import { addInit } from './program/init.ts'
import type { Act, Parts } from './program/parts.ts'
import { addReaders } from './program/readers.ts'
import { addCheck, addStart } from './program/start-and-check.ts'
import { jsonText, textTable } from './texts.ts'

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
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'trellis: ')),
      getOutHelpWidth: () => stdout.columns ?? 100,
      getErrHelpWidth: () => stderr.columns ?? 100,
    })
    .addHelpText('after', exitTable)
  const parts = { ports, act }
  addStart(program, parts)
  addCheck(program, parts)
  addInit(program, parts)
  addReaders(program, parts)
  addAdminCommands(program, parts)
  addSchema(program, parts)
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
