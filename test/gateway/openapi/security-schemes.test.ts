import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

type Credential = { readonly headers?: Record<string, string>; readonly query?: string }

const headerKey = (value: string): Credential => ({ headers: { 'x-shop': value } })
const dottedKey = (value: string): Credential => ({ headers: { api_key: value } })
const cookieKey = (value: string): Credential => ({ headers: { cookie: `shop_key=${value}` } })
const queryKey = (value: string): Credential => ({ query: `key=${value}` })
const bearer = (value: string): Credential => ({ headers: { authorization: `Bearer ${value}` } })
const basic = (value: string): Credential => ({ headers: { authorization: `Basic ${value}` } })
const both = (...all: readonly Credential[]): Credential => ({
  headers: Object.assign({}, ...all.map(({ headers }) => headers)),
  query: all.map(({ query }) => query ?? '').join(''),
})

const schemes = {
  header: { type: 'apiKey', in: 'header', name: 'X-Shop' },
  underscore: { type: 'apiKey', in: 'header', name: 'api_key' },
  cookie: { type: 'apiKey', in: 'cookie', name: 'shop_key' },
  query: { type: 'apiKey', in: 'query', name: 'key' },
  basic: { type: 'http', scheme: 'basic' },
  bearer: { type: 'http', scheme: 'Bearer' },
  oauth: { type: 'oauth2', flows: {} },
  mutual: { type: 'mutualTLS' },
}

type Row = {
  readonly title: string
  readonly security: readonly object[]
  /** Credentials of two callers. */
  readonly accepted: readonly (readonly [Credential, Credential])[]
  readonly refused: readonly Credential[]
  readonly withoutCredential: 200 | 401
  /** Whether a second request of one caller is answered from the cache. */
  readonly isStored?: false
}

const pair = (make: (value: string) => Credential): readonly [Credential, Credential] => [
  make('Zm9v'),
  make('YmFy'),
]

const rows: readonly Row[] = [
  { title: 'none', security: [], accepted: [], refused: [], withoutCredential: 200 },
  {
    title: 'optional',
    security: [{}, { header: [] }],
    accepted: [pair(headerKey)],
    refused: [],
    withoutCredential: 200,
  },
  {
    title: 'a key in a header',
    security: [{ header: [] }],
    accepted: [pair(headerKey)],
    refused: [headerKey(''), cookieKey('a'), bearer('a'), { query: 'X-Shop=a' }],
    withoutCredential: 401,
  },
  {
    title: 'a key in a header whose name has an underscore',
    security: [{ underscore: [] }],
    accepted: [pair(dottedKey)],
    refused: [headerKey('a'), { headers: { 'api-key': 'a' } }],
    withoutCredential: 401,
  },
  {
    title: 'a key in a cookie',
    security: [{ cookie: [] }],
    accepted: [pair(cookieKey)],
    refused: [cookieKey(''), { headers: { cookie: 'other=1' } }, queryKey('a')],
    withoutCredential: 401,
    isStored: false,
  },
  {
    title: 'a key in the query',
    security: [{ query: [] }],
    accepted: [pair(queryKey)],
    refused: [queryKey(''), { query: 'key' }, headerKey('a')],
    withoutCredential: 401,
    isStored: false,
  },
  {
    title: 'http basic',
    security: [{ basic: [] }],
    accepted: [pair(basic)],
    refused: [bearer('a'), { headers: { authorization: 'Basic' } }],
    withoutCredential: 401,
  },
  {
    title: 'http bearer',
    security: [{ bearer: [] }],
    accepted: [pair(bearer)],
    refused: [basic('a'), bearer(''), bearer('a b')],
    withoutCredential: 401,
  },
  {
    title: 'OAuth 2',
    security: [{ oauth: ['read'] }],
    accepted: [pair(bearer)],
    refused: [basic('a')],
    withoutCredential: 401,
  },
  {
    title: 'mutual TLS, of which the request shows nothing',
    security: [{ mutual: [] }],
    accepted: [],
    refused: [],
    withoutCredential: 200,
  },
  {
    title: 'one or the other',
    security: [{ header: [] }, { bearer: [] }],
    accepted: [pair(headerKey), pair(bearer)],
    refused: [basic('a'), cookieKey('a')],
    withoutCredential: 401,
  },
  {
    title: 'one and the other',
    security: [{ header: [], bearer: [] }],
    accepted: [
      [both(headerKey('a'), bearer('Zm9v')), both(headerKey('b'), bearer('Zm9v'))],
      [both(headerKey('a'), bearer('Zm9v')), both(headerKey('a'), bearer('YmFy'))],
    ],
    refused: [headerKey('a'), bearer('a'), both(headerKey(''), bearer('a'))],
    withoutCredential: 401,
  },
]

const pathOf = (index: number): string => `/operation-${index}`

let folder: string
let origin: Origin
let gateway: TestGateway
let counter = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-security-'))
  const paths = Object.fromEntries(
    rows.map(({ security }, index) => [pathOf(index), { get: { security, responses: {} } }]),
  )
  const document = {
    openapi: '3.1.0',
    info: { title: 'x', version: '1' },
    paths,
    components: { securitySchemes: schemes },
  }
  await writeFile(join(folder, 'api.json'), JSON.stringify(document))
  origin = await startOrigin((_request, wire) => {
    counter += 1
    wire.respond({ headers: { 'Content-Type': 'text/plain' }, content: `answer ${counter}` })
  })
  gateway = await startTestGateway({
    services: {
      shop: {
        contract: 'openapi',
        mount: '/',
        document: join(folder, 'api.json'),
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h', scope: 'public' }] },
      },
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await origin.close()
  await rm(folder, { recursive: true })
})

const send = async (index: number, { headers = {}, query }: Credential = {}) => {
  const target = query === undefined || query === '' ? pathOf(index) : `${pathOf(index)}?${query}`
  const response = await fetch(gateway.publicAddress + target, { headers })
  return {
    status: response.status,
    text: await response.text(),
    challenge: response.headers.get('www-authenticate'),
  }
}

describe.each(rows.map((row, index) => ({ ...row, index })))(
  'an operation that takes $title',
  ({ index, accepted, refused, withoutCredential, isStored = true }) => {
    test('is refused with a challenge, or sent, without a credential', async () => {
      const before = origin.received.length
      const { status, challenge } = await send(index)
      expect(status).toBe(withoutCredential)
      expect(challenge === null).toBe(status === 200)
      expect(origin.received.length - before).toBe(status === 200 ? 1 : 0)
    })

    test('is refused with another credential, and the upstream gets nothing', async () => {
      const before = origin.received.length
      for (const credential of refused) {
        const { status } = await send(index, credential)
        expect([credential, status]).toEqual([credential, 401])
      }
      expect(origin.received.length).toBe(before)
    })

    test('has separate responses for each caller', async () => {
      for (const callers of accepted) {
        const texts = new Set([(await send(index)).text])
        for (const caller of [callers[0], callers[1]]) {
          const first = await send(index, caller)
          expect(first.status).toBe(200)
          const again = await send(index, caller)
          expect(again.text === first.text).toBe(isStored)
          texts.add(first.text)
        }
        expect(texts.size).toBe(3)
        // The anonymous caller gets none of theirs afterwards.
        const own = [...texts].slice(1)
        expect(own).not.toContain((await send(index)).text)
      }
    })
  },
)
