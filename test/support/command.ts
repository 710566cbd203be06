import type { CliPorts } from '../../src/cli/cli-ports.ts'
import { runCli } from '../../src/cli/run-cli.ts'

const unused = (): never => {
  throw new Error('not part of this command')
}

/** Runs a command that starts no gateway and asks no upstream, in this process. */
export const runCommand = async (argv: readonly string[], changes: Partial<CliPorts> = {}) => {
  let stdout = ''
  let stderr = ''
  const end = await runCli({
    argv,
    env: {},
    version: 'test',
    defaultFile: undefined,
    demoFile: '',
    packageFolder: new URL('../../', import.meta.url),
    initFile: '',
    handedConfig: undefined,
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    readInput: unused,
    startGateway: unused,
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
    ...changes,
  })
  return { end, stdout, stderr }
}
