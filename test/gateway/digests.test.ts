import { createHash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

// Content-Digest is of the content of the message that carries it (RFC 9530 §2); Repr-Digest is of the whole representation.

const content = 'a representation of some length'
const digestOf = (text: string): string => `sha-256=:${createHash('sha256').update(text).digest('base64')}:`

let origin: Origin
let gateway: TestGateway
let isValidated = false

beforeAll(async () => {
  origin = await startOrigin((received, wire) => {
    isValidated = received.headers['if-none-match'] !== undefined
    const headers = {
      ETag: '"a"',
      'Cache-Control': 'no-cache',
      'Content-Type': 'text/plain',
      'Content-Digest': digestOf(isValidated ? '' : content),
      'Repr-Digest': digestOf(content),
    }
    if (isValidated) wire.write(`HTTP/1.1 304 Not Modified\r\n${lines(headers)}\r\n`)
    else wire.respond({ headers: { ...headers, 'Cache-Control': cacheControl }, content })
  })
  gateway = await startTestGateway({
    services: {
      app: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin] },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

let cacheControl = 'max-age=60'
const lines = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')

const ask = async (path: string, init: RequestInit = {}) => {
  const response = await fetch(gateway.publicAddress + path, {
    ...init,
    headers: { 'Accept-Encoding': 'identity', ...init.headers },
  })
  const text = await response.text()
  const { status, headers } = response
  return { status, text, digest: headers.get('content-digest'), whole: headers.get('repr-digest') }
}

const whole = digestOf(content)

// Several reads of one second: from the second on, heads are prepared.
test.each([1, 2, 3, 4])('of a stored response, read %i', async () => {
  cacheControl = 'max-age=60'
  expect(await ask('/a')).toEqual({ status: 200, text: content, digest: whole, whole })
  expect(await ask('/a', { method: 'HEAD' })).toEqual({ status: 200, text: '', digest: null, whole })
  expect(await ask('/a', { headers: { Range: 'bytes=0-3' } })).toEqual({
    status: 206,
    text: 'a re',
    digest: null,
    whole,
  })
  const parts = await ask('/a', { headers: { Range: 'bytes=0-3, 6-8' } })
  expect(parts).toMatchObject({ status: 206, digest: null, whole })
  const same = await ask('/a', { headers: { 'If-None-Match': '"a"' } })
  expect(same).toMatchObject({ status: 304, digest: null, whole })
  const other = await ask('/a', { headers: { 'If-Match': '"b"' } })
  expect(other).toMatchObject({ status: 412, digest: null })
  const outside = await ask('/a', { headers: { Range: 'bytes=99-' } })
  expect(outside).toMatchObject({ status: 416, digest: null })
})

test('of a 304 does not replace that of the stored response', async () => {
  cacheControl = 'no-cache'
  expect(await ask('/b')).toMatchObject({ status: 200, digest: whole })
  expect(await ask('/b')).toEqual({ status: 200, text: content, digest: whole, whole })
  expect(isValidated).toBe(true)
})
