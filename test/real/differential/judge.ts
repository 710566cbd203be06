import type { Aspect, Difference } from './compare.ts'
import { absentFromRefusals, type Exception } from './exceptions.ts'
import type { CaseReport } from './run-cases.ts'
import type { PlainResponse } from './send.ts'

/** In what a case differed, at either service and either time. */
export function differsIn({ outcomes }: CaseReport): Aspect[] {
  return [...new Set(outcomes.flatMap(({ differences }) => differences.map(({ aspect }) => aspect)))].sort()
}

type TellableDifference = Difference & { readonly through: string; readonly responded: number }

/** A case as a reader of a failing test wants to see it. */
export function toldDifferences({ outcomes }: CaseReport): TellableDifference[] {
  return outcomes.flatMap(({ through, time, differences, response }) =>
    differences.map(({ aspect, direct, gateway }) => ({
      ...{ through: `${through}, ${time} time`, aspect, responded: response.status },
      direct: shortened(direct),
      gateway: shortened(gateway),
    })),
  )
}

function shortened(value: unknown): unknown {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 900 ? `${text.slice(0, 900)}…` : text
}

const isHit = ({ headers }: PlainResponse): boolean => /; ?hit/.test(headers['cache-status'] ?? '')

/** A case that the gateway has refused without its upstream. Cases may share a stored response. */
export function isRefusedByGateway({ outcomes, passages }: CaseReport): boolean {
  return passages.length === 0 && outcomes.every(({ response }) => response.status >= 400 && !isHit(response))
}

/** Nothing in place of what WordPress says, wherever that differs. */
function isAbsent({ outcomes }: CaseReport, aspect: Aspect): boolean {
  const differences = outcomes.flatMap((outcome) => outcome.differences)
  return differences.every((one) => one.aspect !== aspect || one.gateway === undefined)
}

/** In what a case differs although nothing says that it may. */
export function unexpectedDifferences(report: CaseReport, exceptions: readonly Exception[]): Aspect[] {
  const allowed = allowedDifferences(report, exceptions)
  const general = isRefusedByGateway(report) ? absentFromRefusals.filter((one) => isAbsent(report, one)) : []
  // A refusal links to the REST root, and what WordPress has answered instead to other pages.
  const links: readonly Aspect[] = isRefusedByGateway(report) && report.direct.status < 400 ? ['link'] : []
  const meant = [...allowed, ...general, ...links]
  return differsIn(report).filter((aspect) => !meant.includes(aspect))
}

/** What is expected of a case and is no longer so. */
export function staleDifferences(report: CaseReport, exceptions: readonly Exception[]): Aspect[] {
  const found = differsIn(report)
  return allowedDifferences(report, exceptions).filter((aspect) => !found.includes(aspect))
}

function allowedDifferences({ title }: CaseReport, exceptions: readonly Exception[]): readonly Aspect[] {
  return exceptions.find(({ cases }) => cases.includes(title))?.aspects ?? []
}

const argumentCodes = new Set([
  'rest_invalid_param',
  'rest_missing_callback_param',
  'rest_invalid_json',
  'rest_callback_invalid',
  'rest_no_route',
])

/** The code of an error in WordPress's shape. */
function errorCode({ text, headers }: PlainResponse): string | undefined {
  if (headers['content-type']?.startsWith('application/json') !== true || !text.startsWith('{'))
    return undefined
  const { code } = JSON.parse(text) as { code?: unknown }
  return typeof code === 'string' ? code : undefined
}

/** Refused by WordPress because of the request alone, whatever the site holds and whichever user sends it. */
export function isRefusedForItsArguments(direct: PlainResponse): boolean {
  return direct.status >= 400 && argumentCodes.has(errorCode(direct) ?? '')
}

/** One line with the numbers. */
export function summaryOf(reports: readonly CaseReport[], exceptions: readonly Exception[]): string {
  const outcomes = reports.flatMap((report) => report.outcomes)
  const hits = outcomes.filter(({ response }) => isHit(response))
  const refused = reports.filter(({ direct }) => isRefusedForItsArguments(direct))
  const unsent = refused.filter(isRefusedByGateway)
  return [
    `${reports.length} requests`,
    `${outcomes.length} answers compared, ${hits.length} of them hits`,
    `${refused.length} refused for their arguments, ${unsent.length} of them without the upstream`,
    `${exceptions.flatMap(({ cases }) => cases).length} exceptions`,
  ].join('; ')
}
