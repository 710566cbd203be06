import { afterAll, beforeAll, expect, test } from 'vitest'
import { rowsOf } from '../support/breadth.ts'
import type { TestGateway } from '../support/gateway.ts'
import { describeWith } from '../support/requirements.ts'
import { writeCases } from './differential/cases/write-cases.ts'
import {
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
import { steadyAfterWrites } from './differential/steady-content.ts'
import { writeExceptions, writesLeftToWordPress } from './differential/write-exceptions.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const excepted = [...writeExceptions, ...writesLeftToWordPress].flatMap((one) => one.cases)
const cases = rowsOf(writeCases, 5, (request) => excepted.includes(titleOf(request)))
// The same title may be sent twice: the second time it finds what the first has left.
const titles = cases.map((request, number) => [number, titleOf(request)] as const)

describeWith('php', 'writes, directly and through the gateway, each to a copy of the same site', () => {
  let copies: WordPress[] = []
  let relays: Relay[] = []
  let gateway: TestGateway
  let reports: CaseReport[] = []

  beforeAll(async () => {
    const [direct, same, neutral] = [await startWordPress(), await startWordPress(), await startWordPress()]
    copies = [direct, same, neutral]
    relays = [await startRelay(same.origin), await startRelay(neutral.origin)]
    const both = await startBothNames({ same: relays[0] as Relay, wordpress: relays[1] as Relay })
    gateway = both.gateway
    const run = { wordpress: direct, services: both.services, repeats: false, steady: steadyAfterWrites }
    // One after the other, so that ids and slugs are given alike.
    reports = await runCases(cases, run, 1)
  }, 300_000)
  afterAll(async () => {
    await gateway?.close()
    for (const relay of relays) await relay.close()
    for (const copy of copies) await copy.stop()
  })

  test('every exception names a case', () => {
    const known = writeCases.map(titleOf)
    expect(excepted.filter((title) => !known.includes(title))).toEqual([])
  })

  test.each(titles)('%i %s', (number) => {
    const report = reports[number] as CaseReport
    const unexpected = unexpectedDifferences(report, writeExceptions)
    expect(toldDifferences(report).filter(({ aspect }) => unexpected.includes(aspect))).toEqual([])
    expect(staleDifferences(report, writeExceptions), 'no longer differs').toEqual([])
  })

  test('what WordPress refuses for its arguments never reaches it', () => {
    const sent = reports
      .filter(({ direct, passages }) => isRefusedForItsArguments(direct) && passages.length > 0)
      .map(({ title }) => title)
    expect(sent.sort()).toEqual(writesLeftToWordPress.flatMap((one) => one.cases).sort())
    process.stdout.write(`differential writes: ${summaryOf(reports, writeExceptions)}\n`)
  })
})
