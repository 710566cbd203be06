import { existsSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { type ConfigFault, faultLine } from '../config/fault.ts'
import type { ConfigResult } from '../config/load.ts'
import type { UpstreamIssue } from '../gateway/upstream-issues.ts'
import { isJsonObject } from '../http/json-text.ts'
import { type CliPorts, type ExitReason, exitCodes, type StartedGateway } from './cli-ports.ts'
import { type Command, readCommandLine } from './command-line.ts'
import type { AdminAddress } from './commands/admin-commands.ts'
import { explanationText } from './commands/explain-text.ts'
import { helpText } from './commands/help.ts'
import { hintLines } from './commands/hint-lines.ts'
import { withProgress } from './progress.ts'
import {
  closingNotice,
  driftText,
  jsonText,
  printable,
  reachableAddress,
  textTable,
  welcomeText,
} from './texts.ts'

type NamedConfig = { readonly file: string | undefined; readonly result: ConfigResult }

type ConfigChoice = Pick<Command, 'file' | 'demo' | 'demoDocument'>

/** The file named by -c, TRELLIS_CONFIG or the default, in this order. */
const fileOf = (
  { file, demo, demoDocument }: ConfigChoice,
  { env, defaultFile, demoFile }: CliPorts,
): string | undefined => {
  if (demoDocument !== undefined) return demoDocument
  if (demo) return demoFile
  // Containers pass an empty TRELLIS_CONFIG when it is not set.
  return file ?? (env['TRELLIS_CONFIG'] || defaultFile)
}

const noFile = `trellis: no configuration found: name one with -c FILE or TRELLIS_CONFIG, or write ./trellis.yaml
To write one: trellis init    To try Trellis with two embedded upstreams: trellis start --demo
`

/** A gateway in front of the examples of a document, without a configuration file. */
const demoConfig = async (file: string, env: CliPorts['env']): Promise<ConfigResult> => {
  const { checkConfig } = await import('../gateway/load-config.ts')
  const { demoDocumentText } = await import('./document-config.ts')
  const text = await demoDocumentText(file)
  if (typeof text === 'string') return checkConfig(text, env)
  return { kind: 'faults', faults: text.map((message) => ({ path: '', line: 1, column: 1, message })) }
}

/** With none the embedded demo would run, whose passwords are public: a file must ask for it. */
const withServices = (result: ConfigResult): ConfigResult => {
  const hasServices = (filled: unknown): boolean => isJsonObject(filled) && filled['services'] !== undefined
  if (result.kind === 'faults' || hasServices(result.filled)) return result
  const message = 'is missing: name at least one service; to try Trellis without a file: trellis start --demo'
  return { kind: 'faults', faults: [{ path: 'services', line: 1, column: 1, message }] }
}

const standardInput = '(standard input)'

/** Reads a configuration; a worker gets that of its parent process. */
const readConfig = async (
  file: string | undefined,
  ports: CliPorts,
  demoDocument?: string,
): Promise<NamedConfig> => {
  if (ports.handedConfig !== undefined) return { file, result: ports.handedConfig }
  const { env } = ports
  if (demoDocument !== undefined) return { file, result: await demoConfig(demoDocument, env) }
  const { checkConfig, loadConfig } = await import('../gateway/load-config.ts')
  const text = file === '-' ? await ports.readInput() : undefined
  return withProgress(ports, 'reading the configuration and its documents', async () =>
    text === undefined
      ? { file, result: await loadConfig({ file, env }) }
      : { file: standardInput, result: await checkConfig(text, env) },
  )
}

const configName = (file: string | undefined): string => file ?? '(defaults)'

const isMissing = (file: string): boolean =>
  file !== standardInput && (!existsSync(file) || statSync(file).isDirectory())

const missingAdvice = `Name another file with -c FILE, or write ./trellis.yaml with trellis init\n`

/** One line for each fault, then their number. */
const faultLines = (file: string | undefined, faults: readonly ConfigFault[]): string => {
  const lines = faults.map((fault) => `${configName(file)}:${faultLine(fault)}\n`)
  const advice = file !== undefined && isMissing(file) ? missingAdvice : ''
  return `${lines.join('')}${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}\n${advice}`
}

type ListenError = Error & { readonly code: string; readonly address?: string; readonly port?: number }

/** The parent of workers opens their ports, where the system call is `bind`. */
const isListenError = (error: unknown): error is ListenError =>
  error instanceof Error &&
  'syscall' in error &&
  (error.syscall === 'listen' || error.syscall === 'bind') &&
  'code' in error

/** The side whose port could not be opened; the public side is opened first. */
const sideOf = ({ listen }: Config, { address, port }: ListenError): 'listen' | 'admin' =>
  port === listen.port && (address === undefined || address === listen.host) ? 'listen' : 'admin'

/** How the demo gets another port. */
const variable = { listen: ' with TRELLIS_PORT=8081', admin: ' with TRELLIS_ADMIN_PORT=9091' } as const

/** Why the gateway could not start: the key concerned and a remedy. */
const startFailure = (error: unknown, config: Config, demo: boolean): string => {
  if (!isListenError(error)) return error instanceof Error ? error.message : String(error)
  const side = sideOf(config, error)
  const { code, message, address = config[side].host, port = config[side].port } = error
  switch (code) {
    case 'EADDRINUSE':
      return `${side}.port: another program listens on ${address}:${port}; stop it, or choose another port${demo ? variable[side] : ''} (${code})`
    case 'EACCES':
      return `${side}.port: this user may not open port ${port}; choose one from 1024 on, or grant CAP_NET_BIND_SERVICE (${code})`
    case 'EADDRNOTAVAIL':
      return `${side}.host: ${address} is not an address of this machine; 0.0.0.0 means all addresses (${code})`
    case 'ENOTFOUND':
      return `${side}.host: the name cannot be resolved (${code})`
    default:
      return message
  }
}

/** Added to the time of draining, for closing sockets and stores. */
const closeMarginMs = 5_000

type Loaded = Extract<ConfigResult, { kind: 'ok' }> & Pick<NamedConfig, 'file'>

const warningsOf = async (loaded: Loaded) => (await import('../gateway/load-config.ts')).warningsOf(loaded)

const warningLines = async (loaded: Loaded): Promise<string> =>
  (await warningsOf(loaded))
    .map(({ path, message }) => `${configName(loaded.file)}: warning: ${path}: ${message}\n`)
    .join('')

const issueLine = (file: string | undefined, { service, text }: UpstreamIssue): string =>
  `${configName(file)}: upstream of ${service}: ${text}\n`

type DocumentHints = Awaited<ReturnType<CliPorts['documentHints']>>

/** What of OpenAPI documents is accepted but not checked. */
const hintsOf = async (ports: CliPorts, config: Config): Promise<DocumentHints> =>
  config.services.some(({ contract }) => contract === 'openapi') ? ports.documentHints(config) : []

const check = async (ports: CliPorts, loaded: Loaded, { upstreams, json }: Command): Promise<ExitReason> => {
  const { config, hash, file } = loaded
  const hints = await withProgress(ports, 'looking for what is not checked', () => hintsOf(ports, config))
  if (json) {
    const issues = upstreams ? await ports.upstreamIssues(config, 'all') : []
    const registered = upstreams ? await ports.upstreamHints(config) : []
    const facts = {
      warnings: await warningsOf(loaded),
      notes: hints,
      upstreams: issues,
      announced: registered,
    }
    ports.stdout.write(jsonText({ file: configName(file), valid: true, hash, ...facts }))
    return issues.length > 0 ? 'findings' : 'ok'
  }
  ports.stdout.write(await warningLines(loaded))
  ports.stdout.write(hintLines(hints, configName(file)))
  const { length } = config.services
  const services = length === 1 ? '1 service' : `${length} services`
  ports.stdout.write(`${configName(file)}: valid, ${services}, hash ${hash}\n`)
  if (!upstreams) return 'ok'
  for (const hint of await ports.upstreamHints(config))
    ports.stdout.write(printable(`${configName(file)}: note: upstream of ${hint.service}: ${hint.text}\n`))
  const issues = await ports.upstreamIssues(config, 'all')
  for (const issue of issues) ports.stdout.write(printable(issueLine(file, issue)))
  if (issues.length > 0) return 'findings'
  ports.stdout.write(`${configName(file)}: the upstreams fit\n`)
  return 'ok'
}

const order = ['fault', 'warning', 'note', 'ok'] as const

/** The whole set-up, the worst first. */
const doctor = async (ports: CliPorts, loaded: Loaded, { json }: Command): Promise<ExitReason> => {
  const warnings = (await warningsOf(loaded)).map(
    ({ path, message }) => ({ state: 'warning', subject: path, text: message }) as const,
  )
  const examined = [...(await ports.examine(loaded.config)), ...warnings]
  const checks = order.flatMap((state) => examined.filter((check) => check.state === state))
  const faults = checks.filter(({ state }) => state === 'fault').length
  ports.stdout.write(
    json
      ? jsonText({ file: configName(loaded.file), faults, checks })
      : printable(
          checks.map(({ state, subject, text }) => `${state.padEnd(7)} ${subject}: ${text}\n`).join(''),
        ),
  )
  return faults > 0 ? 'findings' : 'ok'
}

const routes = async (
  ports: CliPorts,
  { config, file }: Loaded,
  { upstreams, json }: Command,
): Promise<ExitReason> => {
  const { lines, unread, refused } = await ports.describeRoutes(config, upstreams)
  if (json) {
    ports.stdout.write(jsonText({ routes: lines, unread, refused }))
    return unread.length === 0 ? 'ok' : 'indexUnread'
  }
  const hasHosts = lines.some(({ hosts }) => hosts.length > 0)
  const hasResources = lines.some(({ resource }) => resource !== undefined)
  const cells = lines.map(({ method, hosts, path, service, cached, batchable, source, resource = '-' }) => [
    method,
    ...(hasHosts ? [hosts.length === 0 ? '*' : hosts.join(',')] : []),
    path,
    service,
    cached,
    batchable ? 'yes' : '-',
    ...(upstreams ? [source] : []),
    ...(hasResources ? [resource] : []),
  ])
  const header = [
    'METHOD',
    ...(hasHosts ? ['HOSTS'] : []),
    'PATH',
    'SERVICE',
    'CACHED',
    'BATCHABLE',
    ...(upstreams ? ['SOURCE'] : []),
    ...(hasResources ? ['RESOURCE'] : []),
  ]
  ports.stdout.write(printable(textTable([header, ...cells])))
  for (const { service, text } of refused)
    ports.stderr.write(printable(`${configName(file)}: warning: upstream of ${service}: ${text}\n`))
  for (const { service, reason } of unread) {
    ports.stderr.write(
      `${configName(file)}: upstream of ${service}: no routes learned, the index could not be read: ${reason}\n`,
    )
  }
  return unread.length === 0 ? 'ok' : 'indexUnread'
}

const drift = async (ports: CliPorts, { config }: Loaded, { json }: Command): Promise<ExitReason> => {
  const reports = await ports.driftReport(config)
  ports.stdout.write(json ? jsonText({ services: reports }) : driftText(reports))
  if (reports.some(({ outcome }) => outcome.kind === 'unread')) return 'indexUnread'
  const differs = reports.some(
    ({ outcome }) => outcome.kind === 'compared' && outcome.differences.some(({ matters }) => matters),
  )
  return differs ? 'drift' : 'ok'
}

const explain = async (ports: CliPorts, { config }: Loaded, command: Command): Promise<ExitReason> => {
  const [word = '', url = ''] = command.operands
  // Methods are case-sensitive (RFC 9110 §9.1) and in capitals; on the command line `get` means GET.
  const method = word.toUpperCase()
  const { bodyFile, headers } = command
  const content = bodyFile === undefined ? undefined : await readFile(bodyFile).catch(() => null)
  if (content === null) {
    ports.stderr.write(`trellis: the file ${bodyFile} cannot be read\n`)
    return 'usage'
  }
  // Not normalised by URL: the spelling itself is explained.
  const request = { method, target: url.replace(/#.*$/s, ''), headers, content }
  const explanation = await ports.explain(config, request, command.upstreams)
  ports.stdout.write(command.json ? jsonText(explanation) : explanationText(request, explanation))
  return 'ok'
}

/** What a browser sees of the demo at `/`. */
const demoPage = async ({ packageFolder }: CliPorts, { admin, publicUrl }: Config): Promise<string> => {
  const addresses = { gateway: publicUrl, admin: addressOf(admin, undefined, '').url }
  const page = await readFile(new URL('public/demo.html', packageFolder), 'utf8')
  const escaped = (url: string): string => url.replaceAll('&', '&amp;').replace(/[<>"']/g, '')
  return Object.entries(addresses).reduce(
    (text, [name, url]) => text.replaceAll(`{{${name}}}`, escaped(url)),
    page,
  )
}

const start = async (
  ports: CliPorts,
  loaded: Loaded,
  { demo, demoDocument }: Command,
): Promise<ExitReason | 'running'> => {
  const { config, hash, file, filled } = loaded
  ports.stderr.write(await warningLines(loaded))
  let { files } = loaded
  let gateway: StartedGateway
  try {
    gateway = await ports.startGateway(config, {
      configHash: hash,
      version: ports.version,
      ...(demo && demoDocument === undefined ? { frontPage: await demoPage(ports, config) } : {}),
      filled,
      readConfig: async () => {
        const result = withServices((await readConfig(file, ports, demoDocument)).result)
        // After a failed reading the files of the last good one stay watched.
        if (result.kind === 'ok') files = result.files
        return result
      },
    })
  } catch (error) {
    ports.stderr.write(`trellis: cannot start: ${startFailure(error, config, demo)}\n`)
    return 'notStarted'
  }
  if (config.reload.watch && file !== undefined)
    ports.reloadOnChange(gateway, () => files, config.reload.pollMs)
  const { delayMs, timeoutMs } = config.drain
  ports.stopOnSignal(gateway, delayMs + timeoutMs + closeMarginMs, (start) =>
    closingNotice(start === 'at-once' ? 0 : delayMs, timeoutMs),
  )
  // stdout carries the log.
  ports.stderr.write(welcomeText(config, gateway))
  // In the background: an upstream may be slow or start later than the gateway.
  const publicUrl = config.publicUrl.endsWith(':0') ? gateway.publicAddress : config.publicUrl
  void ports.upstreamIssues({ ...config, publicUrl }, 'sites').then((issues) => {
    for (const issue of issues) gateway.warn(issue)
  })
  return 'running'
}

const schema = async ({ stdout }: CliPorts): Promise<ExitReason> => {
  const { configJsonSchema } = await import('../config/json-schema.ts')
  stdout.write(jsonText(configJsonSchema()))
  return 'ok'
}

const init = async (ports: CliPorts, { operands, force }: Command): Promise<ExitReason> => {
  const [kind = '', folder] = operands
  const { isFileSet, writeFileSet } = await import('./commands/init-files.ts')
  if (isFileSet(kind) && folder !== undefined && operands.length === 2)
    return writeFileSet(ports, kind, folder, force)
  const { writeInitialConfig } = await import('./commands/init.ts')
  return writeInitialConfig(ports, operands, force)
}

const defaultAdmin = 'http://127.0.0.1:9090'

const addressOf = (
  { host, port, token }: Config['admin'],
  url: string | undefined,
  otherToken: string,
): AdminAddress => ({
  url: url ?? reachableAddress(`http://${host.includes(':') ? `[${host}]` : host}:${port}`),
  token: token.isSet ? token.reveal() : otherToken,
})

/**
 * Where the admin side is, and its token. The token of a configuration is sent only where the command or the file names the gateway.
 * A file with faults is enough where its section `admin` has none: the gateway runs with an earlier one, and needs its operator now.
 */
const adminAddress = async (ports: CliPorts, command: Command): Promise<AdminAddress | ExitReason> => {
  const configFile = command.admin === undefined ? fileOf(command, ports) : command.file
  const token = ports.env['TRELLIS_ADMIN_TOKEN'] ?? ''
  const url = command.admin?.replace(/\/+$/, '')
  if (configFile === undefined) return { url: url ?? defaultAdmin, token }
  const { file, result } = await readConfig(configFile, ports)
  if (result.kind === 'ok') return addressOf(result.config.admin, url, token)
  // No file says which gateway is meant.
  if (configFile === '-' || isMissing(configFile)) {
    ports.stderr.write(faultLines(file, result.faults))
    return 'configFaults'
  }
  const { readAdminSection } = await import('../config/load.ts')
  const admin = await readAdminSection(configFile, ports.env)
  const address = admin === undefined ? { url: url ?? defaultAdmin, token } : addressOf(admin, url, token)
  const first = result.faults[0] === undefined ? '' : `, the first is ${faultLine(result.faults[0])}`
  ports.stderr.write(
    printable(`trellis: ${configName(file)} has faults${first}; asking the gateway at ${address.url}\n`),
  )
  return address
}

const remote = async (ports: CliPorts, command: Command): Promise<ExitReason> => {
  const address = await adminAddress(ports, command)
  if (typeof address === 'string') return address
  const { advise, purge, status, warm } = await import('./commands/admin-commands.ts')
  const { stdout, stderr } = ports
  const { json } = command
  switch (command.command) {
    case 'purge':
      return purge({ stdout, stderr, address, json }, command.purge)
    case 'warm':
      return warm({ stdout, stderr, address, json }, command.operands, command.wait)
    case 'advise':
      return advise({ stdout, stderr, address, json })
    default:
      return status({ stdout, stderr, address, json })
  }
}

const withConfig = async (ports: CliPorts, command: Command): Promise<ExitReason | 'running'> => {
  const configFile = fileOf(command, ports)
  if (configFile === undefined && ports.handedConfig === undefined) {
    ports.stderr.write(noFile)
    return 'usage'
  }
  const reading = await readConfig(configFile, ports, command.demoDocument)
  const file = reading.file
  const result = ports.handedConfig === undefined ? withServices(reading.result) : reading.result
  if (result.kind === 'faults') {
    const isCheck = command.command === 'check'
    const output = isCheck ? ports.stdout : ports.stderr
    output.write(
      isCheck && command.json
        ? jsonText({ file: configName(file), valid: false, faults: result.faults })
        : faultLines(file, result.faults),
    )
    return 'configFaults'
  }
  const loaded = { ...result, file }
  switch (command.command) {
    case 'check':
      return check(ports, loaded, command)
    case 'doctor':
      return doctor(ports, loaded, command)
    case 'routes':
      return command.drift ? drift(ports, loaded, command) : routes(ports, loaded, command)
    case 'explain':
      return explain(ports, loaded, command)
    default:
      return start(ports, loaded, command)
  }
}

const runCommand = (ports: CliPorts, command: Command): Promise<ExitReason | 'running'> => {
  switch (command.command) {
    case 'schema':
      return schema(ports)
    case 'init':
      return init(ports, command)
    case 'status':
    case 'advise':
    case 'purge':
    case 'warm':
      return remote(ports, command)
    default:
      return withConfig(ports, command)
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

/** Runs one command. Returns the exit code, or `running` when a gateway was started. */
export const runCli = async (ports: CliPorts): Promise<number | 'running'> => {
  const end = await run(ports)
  return end === 'running' ? end : exitCodes[end].code
}
