import { type Command, CommanderError } from 'commander'
import type { CliPorts } from '../../src/cli/cli-ports.ts'
import { createProgram } from '../../src/cli/program.ts'
import { runCli } from '../../src/cli/run-cli.ts'

const unused = (): never => {
  throw new Error('not part of this command')
}

const silent = { write: () => true }

const commandPorts: Omit<CliPorts, 'argv' | 'stdout' | 'stderr'> = {
  env: {},
  version: 'test',
  defaultFile: undefined,
  demoFile: '',
  packageFolder: new URL('../../', import.meta.url),
  initFile: '',
  handedConfig: undefined,
  readInput: unused,
  startGateway: unused,
  startTrial: unused,
  describeRoutes: unused,
  siteFacts: unused,
  upstreamFreshness: unused,
  upstreamIssues: unused,
  upstreamHints: unused,
  driftReport: unused,
  examine: unused,
  documentHints: unused,
  explain: unused,
  reloadOnChange: unused,
  stopOnSignal: unused,
}

/** The command line, whose commands do nothing. */
export const programOf = (changes: Partial<CliPorts> = {}): Command =>
  createProgram({ ...commandPorts, argv: [], stdout: silent, stderr: silent, ...changes }, async () => {})

/** The words of every command that help shows, `['init', 'open']` for one below another. */
export const commandNames = (): readonly (readonly string[])[] => {
  const below = ({ commands }: Command): string[][] =>
    commands.flatMap((command) => [
      [command.name()],
      ...below(command).map((names) => [command.name(), ...names]),
    ])
  return below(programOf()).filter(([name]) => name !== 'version')
}

/** Why the command line is refused; undefined where it is understood. Nothing is run. */
export const refusalOf = async (argv: readonly string[]): Promise<string | undefined> => {
  let stderr = ''
  const program = programOf({ stderr: { write: (text: string) => (stderr += text) } })
  const end = await program.parseAsync(argv, { from: 'user' }).catch((error: CommanderError) => error)
  return end instanceof CommanderError && end.exitCode !== 0 ? stderr : undefined
}

/** Runs a command that starts no gateway and asks no upstream, in this process. */
export const runCommand = async (argv: readonly string[], changes: Partial<CliPorts> = {}) => {
  let stdout = ''
  let stderr = ''
  const end = await runCli({
    ...commandPorts,
    argv,
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    ...changes,
  })
  return { end, stdout, stderr }
}
