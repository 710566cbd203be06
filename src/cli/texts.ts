import type { Config, OpenApiConfig, ServiceConfig } from '../config/config.ts'
import type { ServiceDrift } from '../gateway/upstream-issues.ts'
import { countText } from '../http/count-text.ts'
import type { Difference } from '../service/connection.ts'

/** Replaces control characters, which could drive a terminal: parts of the output come from URLs and upstreams. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
  text.replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '?')

/** One line for each row of cells, in aligned columns. */
export const alignedLines = (rows: readonly (readonly string[])[]): readonly string[] => {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  const padded = (cell: string, column: number): string => cell.padEnd(widths[column] ?? 0)
  return rows.map((row) => row.map(padded).join('  ').trimEnd())
}

export const textTable = (rows: readonly (readonly string[])[]): string =>
  alignedLines(rows)
    .map((line) => `${line}\n`)
    .join('')

const longestCell = 60

const cellText = (value: unknown): string => {
  if (value === undefined) return '-'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > longestCell ? `${text.slice(0, longestCell - 1)}…` : text
}

const cells = (service: string, line: Difference): string[] => [
  line.kind,
  line.matters ? 'yes' : '-',
  service,
  line.method ?? '-',
  line.route,
  line.argument ?? '-',
  line.keyword ?? '-',
  cellText(line.ours),
  cellText(line.theirs),
]

const header = ['KIND', 'DRIFT', 'SERVICE', 'METHOD', 'ROUTE', 'ARGUMENT', 'KEYWORD', 'CONTRACT', 'UPSTREAM']

/** One line for each difference, those that matter first; then the services whose index could not be read; then the number of differences, if any service was compared. */
export const driftText = (reports: readonly ServiceDrift[]): string => {
  const differences = reports.flatMap(({ service, outcome }) =>
    outcome.kind === 'compared' ? outcome.differences.map((line) => ({ service, line })) : [],
  )
  const drift = differences.filter(({ line }) => line.matters)
  const otherDifferences = differences.filter(({ line }) => !line.matters)
  const lines = [...drift, ...otherDifferences].map(({ service, line }) => cells(service, line))
  const unread = reports.flatMap(({ service, outcome }) =>
    outcome.kind === 'unread'
      ? [`${service}: the index of its upstream could not be read: ${outcome.reason}\n`]
      : [],
  )
  const table = lines.length === 0 ? '' : textTable([header, ...lines])
  const isCompared = reports.some(({ outcome }) => outcome.kind === 'compared')
  const count = isCompared ? `${countText(lines.length, 'difference')}, ${drift.length} of drift\n` : ''
  return printable(`${table}${unread.join('')}${count}`)
}

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(1))} s`

/** Continues "closing": without it, a drain of an idle gateway looks like a program that hangs. */
export const closingNotice = (delayMs: number, timeoutMs: number): string => {
  const delay =
    delayMs === 0 ? '' : `requests are served for another ${seconds(delayMs)} (drain.delay), then `
  return `: ${delay}those in flight have ${seconds(timeoutMs)} (drain.timeout); a second signal ends it immediately`
}

/** JSON for scripts, indented so that people can read it, too. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

const batchBody = `{"requests":[{"path":"/site/v2/posts/1","body":{"title":"One"}},{"path":"/site/v2/posts/2","body":{"title":"Two"}}]}`

/** The address to connect to: loopback for a gateway that listens on every address. */
export const reachableAddress = (address: string): string =>
  address.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

const rootOf = (address: string, { mount }: ServiceConfig): string =>
  mount === '/' ? address : `${address}${mount}`

const siteLines = (root: string): string[] => [
  `  curl -i '${root}/site/v2/posts?per_page=2'`,
  '      # run it twice: the second response is a hit, see Cache-Status',
  `  curl -i '${root}/site/v2/posts?per_page=1000'`,
  '      # refused without an upstream request',
  `  curl -s -u admin:trellis-demo -H 'Content-Type: application/json' -d '${batchBody}' ${root}/batch/v1`,
  '      # a batch: two updates, one response',
]

const plantsLines = (root: string): string[] => [
  `  curl -i -H 'Authorization: Bearer anything' '${root}/plants?limit=3'`,
  '      # a plant store that requires a bearer token',
]

/** The first operations of a document that a URL alone can call. */
const documentLines = (root: string, { document }: OpenApiConfig): string[] => {
  const plain = document.contract.operations.filter(
    ({ method, template, parameters, security }) =>
      method === 'GET' &&
      /^[\w/.~-]*$/.test(template) &&
      security.length === 0 &&
      !parameters.some(({ required }) => required),
  )
  return [
    ...plain.slice(0, 2).map(({ template }) => `  curl -i '${root}${template}'`),
    '      # an example of the document; run it twice: the second response is a hit where a rule stores it, see Cache-Status',
    "      # Prefer: code=404, or Prefer: example=NAME, chooses another response; -H 'Prefer: code=404'",
    `  curl -i '${root}/not-in-the-document'`,
    '      # refused without an upstream request',
  ]
}

const exampleLines = (address: string, service: ServiceConfig): string[] => {
  if (service.upstream.targets !== 'embedded') return []
  const root = rootOf(address, service)
  switch (service.contract) {
    case 'openapi':
      return documentLines(root, service)
    case 'plants':
      return plantsLines(root)
    case 'site':
      return service.names === 'wordpress' ? siteLines(root) : []
    case 'graphql':
    case 'open':
      return []
  }
}

/** The addresses, and example requests for services with an embedded upstream. */
export const welcomeText = (
  config: Config,
  gateway: { readonly publicAddress: string; readonly adminAddress: string },
): string => {
  const examples = config.services.flatMap((service) =>
    exampleLines(reachableAddress(gateway.publicAddress), service),
  )
  const addresses = `Trellis listens on ${gateway.publicAddress} (public) and ${gateway.adminAddress} (admin).\n`
  if (examples.length === 0) return addresses
  return `${addresses}\nTry:\n${examples.join('\n')}\n  curl -s ${reachableAddress(gateway.adminAddress)}/metrics | grep ^trellis_\n      # the metrics\n\n`
}
