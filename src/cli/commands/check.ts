import type { Config } from '../../config/config.ts'
import type { ConfigFault } from '../../config/fault.ts'
import type { UpstreamIssue } from '../../gateway/upstream-issues.ts'
import { countText } from '../../http/count-text.ts'
import type { CliPorts, ExitReason } from '../cli-ports.ts'
import { colored } from '../colors.ts'
import type { JsonOption } from '../options.ts'
import { withProgress } from '../progress.ts'
import { configName, faultLines, type Loaded, warningLines, warningsOf } from '../read-config.ts'
import { jsonText, printable } from '../texts.ts'
import { hintLines } from './hint-lines.ts'

export type CheckOptions = JsonOption & {
  /** Sends requests to the upstreams, too. */
  readonly upstreams?: boolean
}

const issueLine = (file: string | undefined, { service, text }: UpstreamIssue): string =>
  `${configName(file)}: upstream of ${service}: ${text}\n`

type DocumentHints = Awaited<ReturnType<CliPorts['documentHints']>>

/** What of OpenAPI documents is accepted but not checked. */
const hintsOf = async (ports: CliPorts, config: Config): Promise<DocumentHints> =>
  config.services.some(({ contract }) => contract === 'openapi') ? ports.documentHints(config) : []

export const check = async (
  ports: CliPorts,
  loaded: Loaded,
  { upstreams = false, json = false }: CheckOptions,
): Promise<ExitReason> => {
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
  ports.stdout.write(await warningLines(loaded, ports.stdout))
  ports.stdout.write(hintLines(hints, configName(file)))
  const services = countText(config.services.length, 'service')
  ports.stdout.write(
    `${configName(file)}: ${colored(ports.stdout, 'ok', 'valid')}, ${services}, hash ${hash}\n`,
  )
  if (!upstreams) return 'ok'
  for (const hint of await ports.upstreamHints(config))
    ports.stdout.write(printable(`${configName(file)}: note: upstream of ${hint.service}: ${hint.text}\n`))
  const issues = await ports.upstreamIssues(config, 'all')
  for (const issue of issues) ports.stdout.write(printable(issueLine(file, issue)))
  if (issues.length > 0) return 'findings'
  ports.stdout.write(`${configName(file)}: the upstreams fit\n`)
  return 'ok'
}

/** The faults are what `check` is for: they go to stdout. */
export const faultsOfCheck =
  ({ stdout }: CliPorts, { json = false }: JsonOption) =>
  (file: string | undefined, faults: readonly ConfigFault[]): void => {
    stdout.write(
      json ? jsonText({ file: configName(file), valid: false, faults }) : faultLines(file, faults, stdout),
    )
  }

const order = ['fault', 'warning', 'note', 'ok'] as const

/** The whole set-up, the worst first. */
export const doctor = async (
  ports: CliPorts,
  loaded: Loaded,
  { json = false }: JsonOption,
): Promise<ExitReason> => {
  const warnings = (await warningsOf(loaded)).map(
    ({ path, message }) => ({ state: 'warning', subject: path, text: message }) as const,
  )
  const examined = [...(await ports.examine(loaded.config)), ...warnings]
  const checks = order.flatMap((state) => examined.filter((check) => check.state === state))
  const faults = checks.filter(({ state }) => state === 'fault').length
  const line = ({ state, subject, text }: (typeof checks)[number]): string =>
    `${colored(ports.stdout, state === 'note' ? 'place' : state, state.padEnd(7))} ${printable(`${subject}: ${text}`)}\n`
  ports.stdout.write(
    json ? jsonText({ file: configName(loaded.file), faults, checks }) : checks.map(line).join(''),
  )
  return faults > 0 ? 'findings' : 'ok'
}
