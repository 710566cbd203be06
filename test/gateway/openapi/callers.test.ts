import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { audience, createKey, type Issuer, issuerName, keyLine, startIssuer } from '../../support/issuer.ts'
import { type Origin, type Script, startOrigin } from '../../support/origin.ts'

let origin: Origin
let gateway: TestGateway

let folder: string
let issuer: Issuer

const echo: Script = ({ target, headers }, wire) => {
  const { 'x-shop': shop = '', account_id: account = '', 'x-region': region = '', cookie = '' } = headers
  wire.respond({ content: [target, shop, account, region, cookie].join(' ') })
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'callers-'))
  const file = join(folder, 'keys')
  await writeFile(file, keyLine('app', 'secret'))
  issuer = await startIssuer([await createKey('first')])
  origin = await startOrigin()
  const api = {
    contract: 'openapi',
    document: fileURLToPath(new URL('./callers.yaml', import.meta.url)),
    upstream: { targets: [origin.origin] },
    cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
  }
  gateway = await startTestGateway({
    services: {
      api: { ...api, mount: '/' },
      guarded: { ...api, mount: '/guarded', access: { apiKeys: { file, required: 'writes' } } },
      claims: {
        ...api,
        mount: '/claims',
        access: {
          jwt: {
            jwks: issuer.url,
            issuer: issuerName,
            audience,
            forward: { sub: 'X-Region', shop: 'Account-Id' },
            required: 'writes',
          },
        },
      },
    },
  })
})

beforeEach(() => {
  origin.received.length = 0
  origin.script = echo
})

afterAll(async () => {
  await gateway.close()
  await origin.close()
  await issuer.close()
  await rm(folder, { recursive: true })
})

const send = async (path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(gateway.publicAddress + path, { headers })
  const text = await response.text()
  return { status: response.status, text, cache: response.headers.get('cache-status') ?? '' }
}

describe('a credential of one operation is one for all operations of the document', () => {
  test.each([
    ['a header with a plain name', { 'X-Shop': 'alice' }, 'authorization'],
    ['a header with an underscore in its name', { account_id: 'alice' }, 'authorization'],
  ])('%s keeps the response of a public operation out of the cache', async (title, headers, reason) => {
    const at = `/public?${encodeURIComponent(title)}`
    const own = await send(at, headers)
    expect(own.text).toContain('alice')
    expect(own.cache).toContain(`detail=${reason}`)
    expect((await send(at)).text).not.toContain('alice')
  })

  test('a key in the query bypasses the cache at each operation', async () => {
    expect((await send('/public?app%20id=alice')).cache).toContain('detail=api-key')
    expect((await send('/public?app+id=alice')).cache).toContain('detail=api-key')
  })
})

test.each([
  ['that the document does not describe', '/undescribed'],
  ['that no request shows', '/certificate'],
])('responses of an operation with a credential %s are not stored', async (_title, path) => {
  await send(path, { 'X-Team': 'alice' })
  expect((await send(path)).cache).toContain('fwd=bypass')
})

test('a header with an unusual name is sent to the operation that declares it, where it is part of the key, and to no other', async () => {
  const north = { x_region: 'north' }
  await send('/regional', north)
  await send('/public?region', north)
  expect(origin.received.map(({ headers }) => headers['x_region'])).toEqual(['north', undefined])
  expect((await send('/regional', { x_region: 'south' })).cache).toContain('fwd=uri-miss')
  expect((await send('/regional', north)).cache).toContain('hit')
})

test.each([
  ['a declared header', 'x-region', '/regional?twin'],
  ['a declared credential', 'account-id', '/public?twin'],
])('a header that upstreams read as %s is not sent', async (_title, name, path) => {
  const own = await send(path, { [name]: 'mallory', 'X-Other': 'sent' })
  expect(own.status).toBe(200)
  expect(origin.received[0]?.headers).toMatchObject({ 'x-other': 'sent' })
  expect(origin.received[0]?.headers).not.toHaveProperty(name)
})

test.each([
  ['a header that the operation declares', 'x_region', '/claims/regional'],
  ['a credential that the document declares', 'account_id', '/claims/public'],
])('%s is not sent where upstreams read it as a claim', async (_title, name, path) => {
  const token = await issuer.token({ claims: { sub: 'north', shop: 'ann' } })
  const sent = { Authorization: `Bearer ${token}`, [name]: 'mallory', 'X-Other': 'sent' }
  expect((await send(path, sent)).status).toBe(200)
  await send(path, { [name]: 'mallory' })
  expect(origin.received.map(({ headers }) => headers[name])).toEqual([undefined, undefined])
  expect(origin.received[0]?.headers).toMatchObject({
    'x-region': 'north',
    'account-id': 'ann',
    'x-other': 'sent',
  })
})

test('declared headers may have names that every object has', async () => {
  expect((await send('/inherited')).status).toBe(200)
  await send('/inherited', { Constructor: 'a' })
  expect(origin.received.map(({ headers }) => headers['constructor'])).toEqual([undefined, 'a'])
})

describe('where one method and path stand for several operations', () => {
  test('headers and cookies that one of them declares are part of the key, and are not checked', async () => {
    await send('/two', { 'X-Region': 'north' })
    expect((await send('/two', { 'X-Region': 'south' })).text).toContain('south')
    expect((await send('/two', { 'X-Region': 'north' })).cache).toContain('hit')
    expect((await send('/two')).text).not.toContain('north')
    expect((await send('/two', { Cookie: 'lang=fr' })).text).toContain('lang=fr')
    expect((await send('/two')).text).not.toContain('lang')
  })

  test('responses are stored for each credential that one of them takes, and no credential is required', async () => {
    expect((await send('/two?k', { 'X-Shop': 'alice' })).cache).toContain('stored')
    expect((await send('/two?k', { 'X-Shop': 'alice' })).cache).toContain('hit')
    expect((await send('/two?k', { 'X-Shop': 'bob' })).text).not.toContain('alice')
    expect(await send('/two?k')).toMatchObject({ status: 200, text: expect.not.stringMatching('alice|bob') })
  })

  test('a request drops stored responses when one of them writes', async () => {
    await send('/public?acts')
    expect((await send('/public?acts')).cache).toContain('hit')
    await send('/acts')
    expect((await send('/public?acts')).cache).toContain('fwd=uri-miss')
  })
})

describe('a GET that the document says writes', () => {
  test('needs the credential that the service requires of writes', async () => {
    expect((await send('/guarded/reset')).status).toBe(401)
    expect((await send('/guarded/acts')).status).toBe(401)
    expect((await send('/guarded/public')).status).toBe(200)
    expect((await send('/guarded/reset', { 'X-API-Key': 'secret' })).status).toBe(200)
  })

  test.each([200, 302, 500])(
    'drops what another service of the same upstream has stored: %s',
    async (status) => {
      await send('/guarded/public?shared')
      expect((await send('/guarded/public?shared')).cache).toContain('hit')
      origin.script = ({ target }, wire) => wire.respond(target === '/reset' ? { status } : {})
      await fetch(`${gateway.publicAddress}/reset`, { redirect: 'manual' })
      expect((await send('/guarded/public?shared')).cache).toContain('fwd=uri-miss')
    },
  )

  test('is not sent to warm the cache', async () => {
    const body = JSON.stringify({ urls: ['/reset', '/acts', '/public?warm'] })
    const headers = { 'Content-Type': 'application/json' }
    await fetch(`${gateway.adminAddress}/cache/warm`, { method: 'POST', headers, body })
    await origin.until(() => origin.received.length > 0)
    expect(origin.received.map(({ target }) => target)).toEqual(['/public?warm'])
  })

  test('is not sent again when its response is lost', async () => {
    origin.script = (_request, wire) => wire.reset()
    await send('/reset')
    expect(origin.received.map(({ target }) => target)).toEqual(['/reset'])
    await send('/public?lost')
    expect(origin.received.length).toBeGreaterThan(2)
  })
})

test('a query with a % that begins no escape is sent and keyed as it is', async () => {
  expect((await send('/public?x=%2%35')).text).toContain('/public?x=%2%35')
  expect((await send('/public?x=%25')).text).toContain('/public?x=%25 ')
})

test.each([
  ['1,2', 200],
  ['1%2C2', 200],
  ['%C3%A4,2', 200],
  ['%C3%A4%2C2', 200],
  ['%2525%2C2', 200],
  ['1%2Ctwo', 400],
  ['long%2C2', 400],
])('the values of two parameters around an escaped or plain comma are checked: %s', async (pair, status) => {
  expect((await send(`/pairs/${pair}`)).status).toBe(status)
})
