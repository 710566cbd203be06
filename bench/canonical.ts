import { siteRows } from '../src/contracts/site/route-table.ts'
import { createTargetMemo, type RecalledTarget } from '../src/pipeline/service.ts'
import { createRouter } from '../src/request/router.ts'
import { createSiteValidator } from '../src/request/site-validator.ts'

// What it costs to know what a list query means: the first time, and when its target was seen before.

const limits = { queryParameters: 256, jsonDepth: 64 }
const router = createRouter(siteRows)
const validator = createSiteValidator({
  limits,
  unknownParameters: 'strip',
  trackingParameters: ['utm_*', 'fbclid'],
})

const rounds = 9
const calls = 20_000

/** Targets of one shape that differ, so that nothing below can remember them. */
const targets = Array.from(
  { length: calls },
  (_, i) =>
    `/site/v2/posts?per_page=20&page=${(i % 50) + 1}&categories=3,7,${i}&orderby=date&search=fern&_fields=id,title,link`,
)

const cold = (target: string): string => {
  const at = target.indexOf('?')
  const finding = router.find('GET', target.slice(0, at))
  if (finding.kind !== 'found') throw new Error('no row')
  const validation = validator.validate({
    row: finding.row,
    endpoint: finding.endpoint,
    pathParameters: finding.pathParameters,
    method: 'GET',
    query: target.slice(at + 1),
    contentType: undefined,
    content: undefined,
  })
  if (validation.kind !== 'valid') throw new Error('refused')
  return validation.query
}

const memo = createTargetMemo(calls * 2)
for (const target of targets) memo.remember(target, { target: cold(target) } as RecalledTarget)

const measured: readonly (readonly [string, (target: string) => unknown])[] = [
  ['cold: route, validation, canonical query', cold],
  ['seen before: recalled from the memo', (target) => memo.recall(target)],
  ['yardstick: new URL() of the same target', (target) => new URL(target, 'http://a').search],
]

const microseconds = (run: (target: string) => unknown): number => {
  const before = process.cpuUsage()
  for (const target of targets) run(target)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] as number

const results = new Map<string, number[]>(measured.map(([name]) => [name, []]))
for (let round = 0; round <= rounds; round += 1) {
  for (const [name, run] of measured) {
    const cost = microseconds(run)
    // The first round warms the compiler.
    if (round > 0) results.get(name)?.push(cost)
  }
}
console.log(
  `A list query of six parameters, microseconds of CPU a call, median of ${rounds} rounds of ${calls}:`,
)
for (const [name, costs] of results) {
  console.log(
    `  ${name.padEnd(44)} ${median(costs).toFixed(2).padStart(7)}  (${Math.min(...costs).toFixed(2)}–${Math.max(...costs).toFixed(2)})`,
  )
}
