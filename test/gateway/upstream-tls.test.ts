import { expect, onTestFinished, test } from 'vitest'
import { redactedConfig } from '../../src/config/redacted-config.ts'
import { checkConfig, configWarnings } from '../../src/gateway/load-config.ts'
import type { UpstreamOptions } from '../../src/upstream/options.ts'
import { certificatePath, keyPair, pem } from '../support/certificates.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'
import { noTls, request, upstreamOf } from '../unit/upstream/upstream-of.ts'

const originOf = async (tls: Parameters<typeof startOrigin>[1] & object) => {
  const origin = await startOrigin(undefined, tls)
  onTestFinished(() => origin.close())
  return origin
}

const outcome = async (origin: string, tls: Partial<UpstreamOptions['tls']>): Promise<unknown> => {
  const { upstream } = upstreamOf([origin], {
    retry: { attempts: 1, budget: 0 },
    tls: { ...noTls, ...tls },
  })
  return upstream.request(request()).then(
    ({ status }) => status,
    ({ code }) => code,
  )
}

test('a target that requests a certificate gets the configured one', async () => {
  const origin = await originOf({
    tls: { ...keyPair('good'), requestCert: true, rejectUnauthorized: true, ca: pem('client.pem') },
  })
  expect(await outcome(origin.origin, { ca: pem('ca.pem'), ...keyPair('client') })).toBe(200)
  expect(await outcome(origin.origin, { ca: pem('ca.pem') })).not.toBe(200)
})

test.each([
  ['by default it is the address', '', 'upstream_unreachable'],
  ['another one when configured', 'elsewhere.test', 200],
])('the name that a certificate must show: %s', async (_, serverName, expected) => {
  const origin = await originOf({ tls: keyPair('wrong-name') })
  expect(await outcome(origin.origin, { ca: pem('ca.pem'), serverName })).toBe(expected)
})

test.each([
  ['TLSv1.2', 200],
  ['TLSv1.3', 'upstream_unreachable'],
] as const)('a target that speaks TLS 1.2 at most, asked for %s: %s', async (minVersion, expected) => {
  const origin = await originOf({ tls: { ...keyPair('good'), maxVersion: 'TLSv1.2' } })
  expect(await outcome(origin.origin, { ca: pem('ca.pem'), minVersion })).toBe(expected)
})

test('any certificate is taken only when the configuration says so in as many words', async () => {
  const origin = await originOf({ tls: keyPair('expired') })
  expect(await outcome(origin.origin, {})).toBe('upstream_unreachable')
  expect(await outcome(origin.origin, { acceptAnyCertificate: true })).toBe(200)
})

test('from the configuration: certificates from files, and the Host of the public URL', async () => {
  const origin = await originOf({ tls: keyPair('good') })
  const gateway = await startTestGateway({
    publicUrl: 'https://shop.example',
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: {
          targets: [origin.origin],
          host: 'preserve',
          tls: { ca: `file:${certificatePath('ca.pem')}` },
        },
      },
    },
  })
  onTestFinished(async () => void (await gateway.close()))
  const response = await fetch(`${gateway.publicAddress}/x`, { headers: { Host: 'evil.example' } })
  expect(response.status).toBe(200)
  expect(origin.received.map(({ target, headers }) => [target, headers['host']])).toEqual([
    ['/x', 'shop.example'],
  ])
})

const upstreamText = (tls: string) =>
  `services: { a: { contract: open, mount: /, upstream: { targets: ['https://a.test'], tls: ${tls} } } }`

test.each([
  ['a CA that is none', '{ ca: x }', 'services.a.upstream.tls.ca', 'is not a PEM certificate'],
  ['a certificate without a key', '{ cert: x }', 'services.a.upstream.tls.cert', 'needs both cert and key'],
  ['a key without a certificate', '{ key: x }', 'services.a.upstream.tls.key', 'needs both cert and key'],
  ['what is no PEM', '{ cert: x, key: y }', 'services.a.upstream.tls.cert', 'do not match'],
  [
    'a key of another certificate',
    `{ cert: 'file:${certificatePath('good.pem')}', key: 'file:${certificatePath('client.key')}' }`,
    'services.a.upstream.tls.cert',
    'do not match',
  ],
  [
    'a version that is too old',
    "{ minVersion: '1.1' }",
    'services.a.upstream.tls.minVersion',
    '"1.2" or "1.3"',
  ],
])('the configuration refuses %s', async (_, tls, path, message) => {
  const result = await checkConfig(upstreamText(tls), {})
  expect(result.kind === 'faults' && result.faults).toEqual([
    expect.objectContaining({ path, message: expect.stringContaining(message) }),
  ])
})

test('a certificate that is not checked is warned about, and keys are not shown', async () => {
  const text = upstreamText(
    `{ acceptAnyCertificate: true, cert: 'file:${certificatePath('client.pem')}', key: 'file:${certificatePath('client.key')}' }`,
  )
  const result = await checkConfig(text, {})
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  expect(configWarnings(result.config).map(({ path }) => path)).toContain(
    'services.a.upstream.tls.acceptAnyCertificate',
  )
  expect(JSON.stringify(redactedConfig(result.config))).not.toContain('BEGIN')
})
