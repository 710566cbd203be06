import { CommanderError } from 'commander'
import { type CliPorts, type End, exitCodes } from './cli-ports.ts'
import { createProgram } from './program.ts'

/** Runs one command. Returns the exit code, or `running` when a gateway was started. */
export const runCli = async (ports: CliPorts): Promise<number | 'running'> => {
  let end = 'ok' as End
  const program = createProgram(ports, async (work) => {
    end = await work()
  })
  try {
    await program.parseAsync(ports.argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Help and version end here, too.
    end = error.exitCode === 0 ? 'ok' : 'usage'
  }
  return end === 'running' ? end : exitCodes[end].code
}
