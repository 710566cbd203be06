import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../../src/clock.ts'
import { createJwks } from '../../../../src/server/access/verify-token.ts'
import { createKey } from '../../../support/issuer.ts'
import { pause, startOrigin } from '../../../support/origin.ts'

/** Ways in which an issuer sends its keys. */
const forms: Readonly<Record<string, (content: string) => string>> = {
  'with a length': (content) => `HTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n${content}`,
  'in chunks': (content) =>
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`,
  'until the connection ends': (content) => `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${content}`,
  'over HTTP/1.0': (content) => `HTTP/1.0 200 OK\r\n\r\n${content}`,
  'after a 100': (content) =>
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: ${content.length}\r\n\r\n${content}`,
}

/** What is reported of the first fetch of the keys. */
const fetched = async (write: (keys: string) => string): Promise<string> => {
  const { jwk } = await createKey('first')
  const keys = JSON.stringify({ keys: [jwk], more: 'x'.repeat(60_000) })
  const origin = await startOrigin(async (_, wire) => {
    for (let rest = write(keys); rest !== ''; rest = rest.slice(9_000)) {
      wire.write(rest.slice(0, 9_000))
      await pause(1)
    }
    wire.end()
  })
  onTestFinished(() => origin.close())
  return new Promise((resolve) => {
    createJwks({ source: `${origin.origin}/keys`, refreshMs: 60_000, clock: systemClock, report: resolve })
  })
}

test.each(Object.keys(forms))('keys that an issuer sends %s are read', async (form) => {
  expect(await fetched((keys) => forms[form]?.(keys) ?? '')).toBe('ok')
})

test.each([
  ['a redirect', 'status', () => 'HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n'],
  ['a part', 'unreachable', () => 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}'],
  ['no HTTP', 'unreachable', () => 'hello\r\n\r\n'],
  ['too much', 'too-large', (keys: string) => `HTTP/1.0 200 OK\r\n\r\n${keys}${' '.repeat(9_000)}`],
] as const)('of an issuer that sends %s the result is %s', async (_, result, write) => {
  expect(await fetched(write)).toBe(result)
})
