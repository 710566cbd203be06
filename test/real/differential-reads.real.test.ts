import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf, times } from '../support/breadth.ts'
import type { TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { itemCases } from './differential/cases/item-cases.ts'
import { learnedCases } from './differential/cases/learned-cases.ts'
import { listCases } from './differential/cases/list-cases.ts'
import { unknownParameterCases } from './differential/cases/unknown-parameter-cases.ts'
import { absentFromRefusals, exceptions, leftToWordPress } from './differential/exceptions.ts'
import {
  differsIn,
  isRefusedByGateway,
  isRefusedForItsArguments,
  staleDifferences,
  summaryOf,
  toldDifferences,
  unexpectedDifferences,
} from './differential/judge.ts'
import { type Relay, startRelay } from './differential/relay.ts'
import { titleOf } from './differential/request-case.ts'
import { type CaseReport, runCases } from './differential/run-cases.ts'
import { startBothNames } from './differential/services.ts'
import { steadyContent } from './differential/steady-content.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const excepted = [...exceptions, ...leftToWordPress].flatMap((one) => one.cases)
/** In CI one case of each exception. */
const needed = new Set([...exceptions, ...leftToWordPress].flatMap((one) => one.cases.slice(0, 1)))
const allCases = [...listCases, ...itemCases, ...learnedCases, ...unknownParameterCases]
const cases = rowsOf(allCases, 30, (request) => needed.has(titleOf(request)))
const titles = cases.map(titleOf)

describeWith('php', 'reads and refusals, directly and through the gateway', () => {
  let wordpress: WordPress
  let relay: Relay
  let gateway: TestGateway
  const reports = new Map<string, CaseReport>()

  const reportOf = (title: string): CaseReport => {
    const report = reports.get(title)
    if (report === undefined) throw new Error(`no report of ${title}`)
    return report
  }

  beforeAll(async () => {
    wordpress = await startWordPress()
    relay = await startRelay(wordpress.origin)
    const both = await startBothNames({ same: relay, wordpress: relay })
    gateway = both.gateway
    const run = { wordpress, services: both.services, repeats: true, steady: steadyContent } as const
    for (const report of await runCases(cases, run, 3)) reports.set(report.title, report)
  }, 300_000)
  afterAll(async () => {
    await gateway?.close()
    await relay?.close()
    await wordpress?.stop()
  })

  test('no case is there twice, and every exception names a case', () => {
    const all = allCases.map(titleOf)
    expect(all.filter((title, index) => all.indexOf(title) !== index)).toEqual([])
    expect(excepted.filter((title) => !all.includes(title))).toEqual([])
  })

  test.each(titles)('%s', (title) => {
    const report = reportOf(title)
    const unexpected = unexpectedDifferences(report, exceptions)
    expect(toldDifferences(report).filter(({ aspect }) => unexpected.includes(aspect))).toEqual([])
    expect(staleDifferences(report, exceptions), 'no longer differs').toEqual([])
  })

  test.each(absentFromRefusals)('refusals of the gateway carry no %s, those of WordPress do', (aspect) => {
    const refused = [...reports.values()].filter(isRefusedByGateway)
    expect(refused.filter((report) => differsIn(report).includes(aspect)).length).toBeGreaterThan(
      times(3, 30),
    )
  })

  test('what WordPress refuses for its arguments never reaches it', () => {
    const sent = [...reports.values()]
      .filter((report) => isRefusedForItsArguments(report.direct) && !isRefusedByGateway(report))
      .map(({ title }) => title)
    const left = leftToWordPress.flatMap((one) => one.cases).filter((title) => titles.includes(title))
    expect(sent.sort()).toEqual(left.sort())
    process.stdout.write(`differential: ${summaryOf([...reports.values()], exceptions)}\n`)
  })
})
