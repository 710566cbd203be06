import { createSecureServer, type Http2SecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { checkConfig } from '../../src/config/load.ts'
import { redactedConfig } from '../../src/config/redacted-config.ts'
import { configWarnings } from '../../src/config/warnings.ts'
import type { UpstreamOptions } from '../../src/upstream/options.ts'
import { certificatePath, keyPair, pem } from '../support/certificates.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'
import { noTls, request, shortTimes, upstreamOf } from '../unit/upstream/upstream-of.ts'

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
  return upstream.forward(request()).then(
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

const http2Server = async (settings = {}): Promise<{ origin: string; versions: string[] }> => {
  const versions: string[] = []
  const server: Http2SecureServer = createSecureServer(
    { ...keyPair('good'), allowHTTP1: true, settings },
    (incoming, response) => {
      versions.push(incoming.httpVersion)
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
      incoming.on('end', () => {
        const { method, url, headers } = incoming
        const content = chunks.length === 0 ? '' : ` ${Buffer.concat(chunks).subarray(0, 100)}`
        response.writeHead(200, { 'content-type': 'text/plain', 'cache-control': 'max-age=60' })
        response.end(`${method} ${url} ${headers.host ?? headers[':authority']}${content}`)
      })
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, versions }
}

test.each([
  [true, '2.0'],
  [false, '1.1'],
])('HTTP/2 offered: %s, so requests, contents and many at once go over HTTP/%s', async (http2, version) => {
  const { origin, versions } = await http2Server()
  // The time in the queue is for another test: a busy machine takes longer.
  const queue = { max: 64, timeoutMs: 0 }
  const { upstream } = upstreamOf([origin], { http2, queue, tls: { ...noTls, ca: pem('ca.pem') } })
  const answers = await Promise.all([
    upstream.forward(request({ target: '/a' })),
    upstream.forward(request({ target: '/b', method: 'POST', content: Buffer.alloc(100_000) })),
    ...Array.from({ length: 20 }, (_, i) => upstream.forward(request({ target: `/${i}` }))),
  ])
  expect(answers.every(({ status }) => status === 200)).toBe(true)
  for (const { content } of answers) if (content instanceof Readable) await buffer(content)
  expect(new Set(versions)).toEqual(new Set([version]))
  expect(upstream.snapshot()).toMatchObject({ inFlight: 0, targets: [{ outstanding: 0 }] })
  await upstream.close()
})

test.each(
  ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'QUERY'].flatMap((method) =>
    (['read before', 'streamed'] as const).map((kind) => [method, kind] as const),
  ),
)('over HTTP/2 the content of %s, %s, reaches the upstream whole', async (method, kind) => {
  const { origin } = await http2Server()
  const { upstream } = upstreamOf([origin], {
    http2: true,
    retry: { attempts: 1, budget: 0 },
    tls: { ...noTls, ca: pem('ca.pem') },
  })
  const octets = Buffer.from('ten octets')
  for (const target of ['/first', '/next']) {
    const answer = await upstream.forward(
      request({
        method,
        target,
        fields: ['content-type', 'text/plain', 'content-length', String(octets.length)],
        content: kind === 'streamed' ? Readable.from([octets]) : octets,
      }),
    )
    const { content } = answer
    const text = content instanceof Readable ? await buffer(content) : content
    expect(String(text)).toMatch(/ten octets$/)
  }
  await upstream.close()
})

test.each([
  ['for longer than content may pause', { idleMs: 300, totalMs: 5_000 }],
  ['until the time for the whole is over', { idleMs: 5_000, totalMs: 300 }],
])('over HTTP/2 an upstream that takes nothing of a content %s is late, not the client', async (_, times) => {
  const { origin } = await http2Server({ initialWindowSize: 0 })
  const { upstream } = upstreamOf([origin], {
    http2: true,
    tls: { ...noTls, ca: pem('ca.pem') },
    timeouts: { ...shortTimes, ...times },
  })
  const length = 1024 * 1024
  const sent = upstream.forward(
    request({
      method: 'POST',
      fields: ['content-length', String(length)],
      content: Readable.from(Array.from({ length: 16 }, () => Buffer.alloc(length / 16))),
    }),
  )
  await expect(sent).rejects.toMatchObject({ code: 'upstream_timeout', incomplete: true })
  await upstream.destroy()
})

test('over HTTP/2 a caller that goes ends its stream, and others on the connection go on', async () => {
  const { origin, versions } = await http2Server()
  const { upstream } = upstreamOf([origin], { http2: true, tls: { ...noTls, ca: pem('ca.pem') } })
  await upstream.forward(request())
  const caller = new AbortController()
  const gone = upstream.forward(request({ signal: caller.signal }))
  const other = upstream.forward(request({ target: '/other' }))
  caller.abort()
  await expect(gone).rejects.toMatchObject({ code: 'client_gone' })
  expect((await other).status).toBe(200)
  expect(versions.length).toBeGreaterThanOrEqual(2)
})

test('from the configuration: certificates from files, HTTP/2, and the Host of the public URL', async () => {
  const { origin, versions } = await http2Server()
  const gateway = await startTestGateway({
    publicUrl: 'https://shop.example',
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: {
          targets: [origin],
          host: 'preserve',
          http2: true,
          tls: { ca: `file:${certificatePath('ca.pem')}` },
        },
      },
    },
  })
  onTestFinished(async () => void (await gateway.close()))
  const response = await fetch(`${gateway.publicAddress}/x`, { headers: { Host: 'evil.example' } })
  expect(await response.text()).toBe('GET /x shop.example')
  expect(versions).toEqual(['2.0'])
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
