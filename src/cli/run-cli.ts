import type { Config } from '../config/config.ts'
import { configJsonSchema } from '../config/json-schema.ts'
import { configWarnings } from '../config/warnings.ts'
import type { CliPorts, RunningGateway, UpstreamFinding } from './cli-ports.ts'
import { type CommandLine, readCommandLine } from './command-line.ts'
import { driftText } from './drift-text.ts'
import { type ExitReason, exitCodes } from './exit-codes.ts'
import { explanationText } from './explanation-text.ts'
import { helpText } from './help.ts'
import { printable } from './printable.ts'
import { configName, faultLines, readConfig } from './read-config.ts'
import { startFailure } from './start-failure.ts'
import { textTable } from './text-table.ts'
import { welcomeText } from './welcome.ts'

type Command = Extract<CommandLine, { kind: 'command' }>
type Loaded = {
  readonly config: Config
  readonly hash: string
  readonly file: string | undefined
  readonly files: readonly string[]
  readonly filled: unknown
}

/** Beyond what draining may take by itself: time to close sockets and stores. */
const closeMarginMs = 5_000

const warningLines = (config: Config, file: string | undefined): string =>
  configWarnings(config)
    .map(({ path, message }) => `${configName(file)}: warning: ${path}: ${message}\n`)
    .join('')

const findingLine = (file: string | undefined, { service, text }: UpstreamFinding): string =>
  `${configName(file)}: upstream of ${service}: ${text}\n`

const check = async (
  ports: CliPorts,
  { config, hash, file }: Loaded,
  { upstreams }: Command,
): Promise<ExitReason> => {
  ports.stdout.write(warningLines(config, file))
  const { length } = config.services
  const services = length === 1 ? '1 service' : `${length} services`
  ports.stdout.write(`${configName(file)}: valid, ${services}, hash ${hash}\n`)
  if (!upstreams) return 'ok'
  const findings = await ports.upstreamFindings(config)
  for (const finding of findings) ports.stdout.write(printable(findingLine(file, finding)))
  if (findings.length > 0) return 'findings'
  ports.stdout.write(`${configName(file)}: the upstreams fit\n`)
  return 'ok'
}

const routes = async (
  ports: CliPorts,
  { config, file }: Loaded,
  { upstreams }: Command,
): Promise<ExitReason> => {
  const { lines, unread } = upstreams
    ? await ports.describeLearnedRoutes(config)
    : ports.describeRoutes(config)
  const cells = lines.map(({ method, path, service, cached, batchable, source }) => [
    method,
    path,
    service,
    cached,
    batchable ? 'yes' : '-',
    ...(upstreams ? [source] : []),
  ])
  const header = ['METHOD', 'PATH', 'SERVICE', 'CACHED', 'BATCHABLE', ...(upstreams ? ['SOURCE'] : [])]
  ports.stdout.write(printable(textTable([header, ...cells])))
  for (const { service, reason } of unread) {
    ports.stderr.write(
      `${configName(file)}: upstream of ${service}: nothing was learned, the index could not be read: ${reason}\n`,
    )
  }
  return unread.length === 0 ? 'ok' : 'indexUnread'
}

const drift = async (ports: CliPorts, { config }: Loaded): Promise<ExitReason> => {
  const reports = await ports.driftReport(config)
  ports.stdout.write(driftText(reports))
  if (reports.some(({ outcome }) => outcome.kind === 'unread')) return 'indexUnread'
  const differs = reports.some(
    ({ outcome }) => outcome.kind === 'compared' && outcome.differences.some(({ matters }) => matters),
  )
  return differs ? 'drift' : 'ok'
}

const explain = async (ports: CliPorts, { config }: Loaded, command: Command): Promise<ExitReason> => {
  const [method = '', url = ''] = command.operands
  if (!URL.canParse(url, config.publicUrl)) {
    ports.stderr.write('trellis: explain expects a path such as /plants, or a URL\n')
    return 'usage'
  }
  // The target as it is written, not as URL would spell it: the spelling is what is asked about.
  const target = url.replace(/^https?:\/\/[^/?#]*/i, '').replace(/#.*$/s, '')
  const request = { method, target: target.startsWith('/') ? target : `/${target}`, fields: command.fields }
  const explanation = command.upstreams
    ? await ports.explainLearned(config, request)
    : ports.explain(config, request)
  ports.stdout.write(explanationText(explanation))
  return 'ok'
}

const start = async (
  ports: CliPorts,
  { config, hash, file, files: named, filled }: Loaded,
): Promise<ExitReason | 'running'> => {
  ports.stderr.write(warningLines(config, file))
  let files = named
  let gateway: RunningGateway
  try {
    gateway = await ports.startGateway(config, {
      configHash: hash,
      configFile: file,
      version: ports.version,
      filled,
      readConfig: async () => {
        const { result } = await readConfig(file, ports)
        // A file that cannot be read whole is still the one to watch, with all that it named before.
        if (result.kind === 'ok') files = result.files
        return result
      },
    })
  } catch (error) {
    ports.stderr.write(`trellis: cannot start: ${startFailure(error, config)}\n`)
    return 'notStarted'
  }
  if (config.reload.watch && file !== undefined)
    ports.reloadOnChange(gateway, () => files, config.reload.pollMs)
  ports.stopOnSignal(gateway, config.drain.delayMs + config.drain.timeoutMs + closeMarginMs)
  // Not on stdout, which carries log lines for machines.
  ports.stderr.write(welcomeText(config, gateway))
  // Not waited for: an upstream may be slow, or start later than its gateway.
  const publicUrl = config.publicUrl.endsWith(':0') ? gateway.publicAddress : config.publicUrl
  void ports.upstreamFindings({ ...config, publicUrl }).then((findings) => {
    for (const finding of findings) gateway.warn(finding)
  })
  return 'running'
}

const runCommand = async (ports: CliPorts, command: Command): Promise<ExitReason | 'running'> => {
  if (command.command === 'schema') {
    ports.stdout.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`)
    return 'ok'
  }
  const { file, result } = await readConfig(command.file, ports)
  if (result.kind === 'faults') {
    const output = command.command === 'check' ? ports.stdout : ports.stderr
    output.write(faultLines(file, result.faults))
    return 'configFaults'
  }
  const loaded = { ...result, file }
  switch (command.command) {
    case 'check':
      return check(ports, loaded, command)
    case 'routes':
      return command.drift ? drift(ports, loaded) : routes(ports, loaded, command)
    case 'explain':
      return explain(ports, loaded, command)
    case 'start':
      return start(ports, loaded)
  }
}

const run = async (ports: CliPorts): Promise<ExitReason | 'running'> => {
  const line = readCommandLine(ports.argv)
  switch (line.kind) {
    case 'help':
      ports.stdout.write(helpText(line.command))
      return 'ok'
    case 'version':
      ports.stdout.write(`${ports.version}\n`)
      return 'ok'
    case 'fault': {
      const help = line.command === undefined ? 'trellis --help' : `trellis ${line.command} --help`
      ports.stderr.write(`trellis: ${line.message}\nTry: ${help}\n`)
      return 'usage'
    }
    case 'command':
      return runCommand(ports, line)
  }
}

/** Runs one command. Gives the code to exit with, or `running` when the gateway is up and signals will end it. */
export const runCli = async (ports: CliPorts): Promise<number | 'running'> => {
  const end = await run(ports)
  return end === 'running' ? end : exitCodes[end].code
}
