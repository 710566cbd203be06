import { existsSync, statSync } from 'node:fs'
import { type ConfigFault, faultText } from '../config/fault.ts'
import type { ConfigResult } from '../config/load.ts'
import { countText } from '../http/count-text.ts'
import { isJsonObject } from '../http/json-text.ts'
import type { CliPorts, End, TextOutput } from './cli-ports.ts'
import { colored } from './colors.ts'
import { withProgress } from './progress.ts'

type NamedConfig = { readonly file: string | undefined; readonly result: ConfigResult }

/** What the command line says of the configuration. */
export type ConfigChoice = {
  /** `-` is standard input. */
  readonly config?: string | undefined
  /** The configuration of the package, with its demo services. */
  readonly demo?: boolean
  /** `start --demo openapi FILE`: the demo is this document, answered by its own examples. */
  readonly demoDocument?: string | undefined
}

/** The file named by -c, TRELLIS_CONFIG or the default, in this order. */
export const fileOf = (
  { config, demo, demoDocument }: ConfigChoice,
  { env, defaultFile, demoFile }: CliPorts,
): string | undefined => {
  if (demoDocument !== undefined) return demoDocument
  if (demo === true) return demoFile
  // Containers pass an empty TRELLIS_CONFIG when it is not set.
  return config ?? (env['TRELLIS_CONFIG'] || defaultFile)
}

const noFile = `trellis: no configuration found: name one with -c FILE or TRELLIS_CONFIG, or write ./trellis.yaml
To write one: trellis init    To try Trellis with two demo services: trellis start --demo
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
export const withServices = (result: ConfigResult): ConfigResult => {
  const hasServices = (filled: unknown): boolean => isJsonObject(filled) && filled['services'] !== undefined
  if (result.kind === 'faults' || hasServices(result.filled)) return result
  const message = 'is missing: name at least one service; to try Trellis without a file: trellis start --demo'
  return { kind: 'faults', faults: [{ path: 'services', line: 1, column: 1, message }] }
}

const standardInput = '(standard input)'

/** Reads a configuration; a worker gets that of its parent process. */
export const readConfig = async (
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

export const configName = (file: string | undefined): string => file ?? '(defaults)'

export const isMissing = (file: string): boolean =>
  file !== standardInput && (!existsSync(file) || statSync(file).isDirectory())

const missingAdvice = `Name another file with -c FILE, or write ./trellis.yaml with trellis init\n`

/** One line for each fault, then their number. */
export const faultLines = (
  file: string | undefined,
  faults: readonly ConfigFault[],
  output: Pick<TextOutput, 'hasColors'>,
): string => {
  const lines = faults.map((fault) => {
    const place = `${configName(file)}:${fault.line}:${fault.column}`
    return `${colored(output, 'place', place)} ${colored(output, 'fault', faultText(fault))}\n`
  })
  const advice = file !== undefined && isMissing(file) ? missingAdvice : ''
  return `${lines.join('')}${countText(faults.length, 'fault')}\n${advice}`
}

export type Loaded = Extract<ConfigResult, { kind: 'ok' }> & Pick<NamedConfig, 'file'>

export const warningsOf = async (loaded: Loaded) =>
  (await import('../gateway/load-config.ts')).warningsOf(loaded)

export const warningLines = async (loaded: Loaded, output: Pick<TextOutput, 'hasColors'>): Promise<string> =>
  (await warningsOf(loaded))
    .map(
      ({ path, message }) =>
        `${configName(loaded.file)}: ${colored(output, 'warning', 'warning')}: ${path}: ${message}\n`,
    )
    .join('')

/** Says what is wrong with a configuration: to stderr, since stdout carries what the command is for. */
const printFaults =
  ({ stderr }: CliPorts) =>
  (file: string | undefined, faults: readonly ConfigFault[]): void => {
    stderr.write(faultLines(file, faults, stderr))
  }

/** Runs a command with the configuration that was chosen, unless there is none or it has faults. */
export const withConfig = async (
  ports: CliPorts,
  choice: ConfigChoice,
  command: (loaded: Loaded) => Promise<End>,
  showFaults = printFaults(ports),
): Promise<End> => {
  const configFile = fileOf(choice, ports)
  if (configFile === undefined && ports.handedConfig === undefined) {
    ports.stderr.write(noFile)
    return 'usage'
  }
  const reading = await readConfig(configFile, ports, choice.demoDocument)
  const result = ports.handedConfig === undefined ? withServices(reading.result) : reading.result
  if (result.kind === 'ok') return command({ ...result, file: reading.file })
  showFaults(reading.file, result.faults)
  return 'configFaults'
}
