import { expect, test } from 'vitest'
import { adviceFor } from '../../../src/admin/advice.ts'
import { noStoreReasons } from '../../../src/cache/events.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const limits = { maxBytes: 64 * 1_048_576 }

const lost = (reason: string, route = '/site/v2/posts/{id}', count = 60) => ({
  service: 'blog',
  route,
  reason,
  count,
  reads: 183,
})

test('names the share of the reads, and the settings to copy', () => {
  expect(adviceFor([lost('cookie')], limits)).toMatchObject([
    {
      service: 'blog',
      route: '/site/v2/posts/{id}',
      count: 60,
      reads: 183,
      share: 60 / 183,
      yaml: 'services:\n  blog:\n    cache:\n      harmlessCookies: [NAME]',
    },
  ])
})

test('the worst comes first; a write that emptied the cache costs more than one read', () => {
  const rows = [lost('cookie', '/a', 30), lost('emptied', 'POST /x', 7), lost('no-rule', '/b', 50)]
  expect(adviceFor(rows, limits).map(({ reason }) => reason)).toEqual(['emptied', 'no-rule', 'cookie'])
})

test('at most 20 rows, and none for what costs nothing', () => {
  expect(
    adviceFor(
      Array.from({ length: 30 }, (_, at) => lost('cookie', `/${at}`)),
      limits,
    ),
  ).toHaveLength(20)
  expect(adviceFor([lost('overtaken'), lost('cookie', '/a', 0)], limits)).toEqual([])
})

const withSettings = [
  ...['no-rule', 'authorization', 'cookie', 'no-freshness', 'no-store', 'private', 'status', 'token'],
  ...['emptied', 'key-header', 'key-parameter', 'expired', 'evicted'],
]

/** The YAML is what a user pastes: it has to be a configuration, beside what the service has already. */
test.each(withSettings)('its settings are valid: %s', async (reason) => {
  const [advice] = adviceFor([lost(reason, reason === 'emptied' ? 'POST /acme/v1/ping' : undefined)], limits)
  const yaml = advice?.yaml?.replace(
    '  blog:\n',
    // Open services have no declared parameters.
    `  blog:\n    contract: ${reason === 'key-parameter' ? 'site' : 'open'}\n    mount: /api\n    upstream: { targets: ['http://127.0.0.1:9'] }\n`,
  )
  expect(yaml).toBeDefined()
  expect(await checkConfig((yaml ?? '').replaceAll('NAME', 'theme'), {})).toMatchObject({ kind: 'ok' })
})

test('each reason why a response is not stored has advice, but for those that cost nothing', () => {
  const costless = ['part', 'authorization', 'must-understand', 'event-stream', 'overtaken', 'method']
  const without = noStoreReasons.filter((reason) => adviceFor([lost(reason)], limits).length === 0)
  expect(without.filter((reason) => !costless.includes(reason))).toEqual([])
})

test.each([
  ['query Posts', 'query Posts'],
  ['query', 'query *'],
  ['query other', 'query *'],
  ['batch', 'query *'],
])('for the operation %s of GraphQL it is a rule for %s', async (operation, match) => {
  for (const reason of ['no-rule', 'private', 'status']) {
    const [{ yaml = '' } = {}] = adviceFor([lost(reason, operation)], limits)
    if (reason !== 'status') expect(yaml).toContain(`match: '${match}'`)
    const graph = "contract: graphql\n    upstream: { targets: ['http://127.0.0.1:9'] }"
    expect(await checkConfig(yaml.replace('  blog:\n', `  blog:\n    ${graph}\n`), {})).toMatchObject({
      kind: 'ok',
    })
  }
})

test('a write without a route of its own has the place for its path', () => {
  const [{ yaml = '' } = {}] = adviceFor([lost('emptied', 'POST unlisted')], limits)
  expect(yaml).toContain("harmlessWrites: ['POST /NAME']")
})

test('memory is doubled for the whole gateway', () => {
  expect(adviceFor([lost('evicted')], limits)[0]?.yaml).toBe('cache:\n  maxBytes: 128MiB')
})

test('no setting makes a mutation of GraphQL harmless', () => {
  expect(adviceFor([lost('emptied', 'POST mutation Add')], limits)[0]).not.toHaveProperty('yaml')
})
