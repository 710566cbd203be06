import { expect, test } from 'vitest'
import { loadConfig } from '../../src/gateway/load-config.ts'
import { driftReport } from '../../src/gateway/upstream-issues.ts'
import { createStateLog } from '../../src/observability/event-lines.ts'
import { createMetrics, observedBy } from '../../src/observability/metrics.ts'
import { descriptionLabels } from '../../src/wordpress/tags/description-labels.ts'

test('an index that cannot be read and drift are counted and written down', async () => {
  const lines: unknown[] = []
  const log = {
    info: (facts: object, message: string) => lines.push(['info', message, facts]),
    warn: (facts: object, message: string) => lines.push(['warn', message, facts]),
  }
  const metrics = observedBy(
    createMetrics({ descriptionLabels, version: '', configHash: '', processMetrics: false }),
    createStateLog(log),
  )
  const { discovery } = metrics.observe
  const cause = new Error('ECONNREFUSED')
  const service = 'site'
  discovery({
    kind: 'index-failed',
    service,
    reason: 'unreachable',
    keptLast: true,
    cause,
  })
  discovery({
    kind: 'index-refreshed',
    service,
    unlistedRoutes: 0,
    learnedRows: 0,
    refused: {},
  })
  discovery({ kind: 'drift-compared', service, differences: { 'route-missing': 2 } })
  discovery({ kind: 'drift-compared', service, differences: {} })
  discovery({ kind: 'routes-refused', service, refused: { 'pattern-unreadable': 2 } })
  expect(lines).toEqual([
    ['warn', 'index-failed', { service, reason: 'unreachable', keptLast: true, err: cause }],
    ['warn', 'drift-compared', { service, differences: { 'route-missing': 2 } }],
    ['info', 'no-drift', { service }],
    ['warn', 'routes-refused', { service, refused: { 'pattern-unreadable': 2 } }],
  ])
  expect(await metrics.scrape()).toContain(
    'trellis_discovery_differences{service="site",kind="route-missing"} 0',
  )
})

test('the demo announces what its contract declares: nothing drifts', async () => {
  const demo = await loadConfig({ file: 'config/gateway.yaml', env: {} })
  if (demo.kind === 'faults') throw new Error(JSON.stringify(demo.faults))
  const reports = await driftReport(demo.config)
  expect(reports).toEqual([{ service: 'site', outcome: { kind: 'compared', differences: [] } }])
})
