import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { shownConfig } from '../../../src/config/redacted-config.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const accepted = async (text: string) => {
  const result = await checkConfig(text, {})
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result.config
}

const everything = `
log: { level: debug, access: sample, format: pretty }
limits: { bodyBytes: 3MiB, headersTimeout: 1500ms }
overload: { interval: 1s }
drain: { delay: 0s, timeout: 90s }
rateLimits: [{ name: writes, service: legacy, match: 'POST,PUT /**', max: 5, window: 10m }]
services:
  plants: { contract: plants }
  site:
    contract: site
    discovery: { source: static, refresh: 1d, identity: { name: x } }
    batch: { deadline: 40s, idempotency: { ttl: 2h } }
    upstream:
      targets: ['http://127.0.0.1:1']
      health: { path: /up, interval: 10s, expect: '200-299,401' }
      tls: { minVersion: '1.3' }
  legacy:
    contract: open
    mount: /legacy
    upstream: { targets: ['http://127.0.0.1:2'], eject: { for: 7s } }
    responseHeaders: { set: { X-Ms: '5' } }
    access: { allow: [10.0.0.0/8], jwt: { jwks: 'https://id.example/k', issuer: i, audience: a, leeway: 1m } }
    cache: { rules: [{ match: 'GET /a/**', ttl: 1h, staleIfError: 2d, negativeTtl: 10s }] }
`

test.each([
  ['the defaults', '{}'],
  ['many settings', everything],
])('the configuration is shown in the names of the file: %s', async (_, text) => {
  const config = await accepted(text)
  const shown = shownConfig(config)
  expect(await accepted(stringify(shown))).toEqual(config)
  expect(JSON.stringify(shown)).not.toMatch(/"\w+Ms":/)
})

test('durations and sizes have their units, services their names', async () => {
  expect(shownConfig(await accepted(everything))).toMatchObject({
    log: { access: { requests: 'sample', client: false } },
    limits: { bodyBytes: '3MiB', headersTimeout: '1500ms' },
    drain: { delay: '0s', timeout: '90s' },
    services: {
      plants: { upstream: { targets: ['embedded'] } },
      legacy: { cache: { rules: [{ match: 'GET /a/**', ttl: '1h', staleIfError: '2d' }] } },
      site: { upstream: { health: { expect: '200-299,401' }, tls: { minVersion: '1.3' } } },
    },
  })
})

test('no secret is shown', async () => {
  const config = await accepted(`
admin: { token: planted-secret }
cache: { shared: { url: 'redis://:planted-secret@127.0.0.1', key: [planted-secret-planted-secret-planted] } }
tracing: { otlpUrl: 'http://user:planted-secret@127.0.0.1/?key=planted-secret' }
`)
  expect(JSON.stringify(shownConfig(config))).not.toContain('planted-secret')
})

test('URLs are shown without their query and user', async () => {
  const shown = JSON.stringify(
    shownConfig(
      await accepted(`
tracing: { otlpUrl: 'https://ann:key-1@otlp.example/v1?k=key-2' }
services:
  a:
    contract: open
    mount: /
    upstream: { targets: ['http://127.0.0.1:1'] }
    access: { jwt: { jwks: 'https://id.example/keys?api-key=key-4', issuer: 'https://id.example/?t=key-5', audience: a } }
`),
    ),
  )
  expect(shown).not.toMatch(/key-\d|ann/)
  expect(shown).toContain('https://id.example/keys?[redacted]')
})
