import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type HeaderChanges, linesText } from '../../../../src/http/headers/header-lines.ts'
import { headersOf } from '../../../../src/server/send/http2-headers.ts'
import { createChangesFor } from '../../../../src/server/send/response-changes.ts'

const shop = 'https://shop.test'
const cors = {
  origins: [shop],
  methods: ['GET', 'PUT'],
  headers: ['X-WP-Nonce'],
  exposedHeaders: ['ETag'],
  credentials: true,
  maxAgeMs: 60_000,
} as const
const security: HeaderChanges = {
  set: ['Strict-Transport-Security', 'max-age=1', 'X.Y', '1'],
  removed: new Set(['strict-transport-security', 'x.y', 'x-powered-by']),
}
const asked = (origin?: string, more: Record<string, string> = {}, method = 'GET') =>
  ({
    method,
    headers: { ...(origin === undefined ? {} : { origin }), ...more },
  }) as unknown as IncomingMessage

const names = ['Vary', 'vary', 'X-Powered-By', 'XaY', 'X.Y', 'Access-Control-Allow-Origin', 'ETag', 'Age']
const values = ['Accept-Encoding', 'Origin', 'origin, Accept', '*', 'x: y', '"a"']
/** What the gateway adds behind them. */
const ownLines = [
  ['Age', '1'],
  ['X-Powered-By', 'trellis'],
  ['X.Y', '2'],
]
const lines = fc
  .array(fc.tuple(fc.constantFrom(...names), fc.constantFrom(...values)), { maxLength: 8 })
  .map((pairs) => pairs.flat())

describe('what every response gets', () => {
  test('is the same in lines and in a text of lines', () => {
    fc.assert(
      fc.property(
        lines,
        fc.subarray(ownLines),
        fc.constantFrom(undefined, cors, { ...cors, origins: ['*'] }),
        fc.constantFrom(undefined, security, { set: ['Vary', 'X'], removed: new Set(['vary']) }),
        fc.constantFrom(undefined, shop, 'https://evil.test'),
        (given, own, configured, changes, origin) => {
          const made = createChangesFor(configured as typeof cors)(changes, asked(origin))
          if (made === undefined) return
          const all = [...given, ...own.flat()]
          const head = {
            of: all,
            begin: { of: given, begin: undefined, text: linesText(given) },
            text: linesText(own.flat()),
          }
          const sorted = (text: string): readonly string[] => text.split('\r\n').toSorted()
          expect(sorted(made.text(head))).toEqual(sorted(linesText(made.headerLines(all))))
          // Made for the first response that begins with these lines, and used for the next one.
          expect(made.text(head)).toBe(made.text(head))
          const headers = headersOf(made.headerLines(all), 200)
          expect(made.headers(head, 200)).toEqual(headers)
          expect(made.headers(head, 200)).toEqual(headers)
        },
      ),
      { numRuns: 500 },
    )
  })

  test('is by kind of origin, and the changes of the service are the last ones', () => {
    const changesFor = createChangesFor(cors as never)
    const upstream = [
      'Vary',
      'Accept',
      'Access-Control-Allow-Origin',
      'https://other.test',
      'X-Powered-By',
      'PHP',
    ]
    const own = [...security.set]
    const allowed = [
      ...['Access-Control-Allow-Origin', shop, 'Access-Control-Allow-Credentials', 'true'],
      ...['Access-Control-Expose-Headers', 'ETag'],
    ]
    const vary = ['Vary', 'Accept, Origin']
    expect(changesFor(security, asked(shop))?.headerLines(upstream)).toEqual([...vary, ...allowed, ...own])
    for (const origin of [undefined, 'https://evil.test', 'constructor'])
      expect(changesFor(security, asked(origin))?.headerLines(upstream)).toEqual([...vary, ...own])
    const replaced = {
      set: ['Access-Control-Allow-Origin', 'x'],
      removed: new Set(['access-control-allow-origin']),
    }
    const headers = changesFor(replaced, asked(shop))?.headerLines([]) ?? []
    expect(headers.filter((name) => name === 'Access-Control-Allow-Origin')).toHaveLength(1)
    expect(headers).toContain('x')
  })

  test('is more for a preflight of an allowed origin, and nothing for one that is refused', () => {
    const changesFor = createChangesFor(cors as never)
    const method = { 'access-control-request-method': 'PUT' }
    const permitted = changesFor(undefined, asked(shop, method, 'OPTIONS'))?.headerLines([])
    expect(permitted).toEqual(expect.arrayContaining(['Access-Control-Allow-Methods', 'GET, PUT', '60']))
    expect(changesFor(undefined, asked('https://evil.test', method, 'OPTIONS'))?.headerLines([])).toEqual([
      'Vary',
      'Origin',
    ])
    expect(changesFor(undefined, asked(shop, method))?.headerLines([])).not.toContain(
      'Access-Control-Allow-Methods',
    )
  })

  test('is nothing without cors and changes', () => {
    expect(createChangesFor(undefined)(undefined, asked(shop))).toBeUndefined()
  })
})
