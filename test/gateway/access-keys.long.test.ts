import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { audience, createKey, type Issuer, issuerName, keyLine, startIssuer } from '../support/issuer.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

type Tree = { readonly [key: string]: unknown }

let issuer: Issuer
let origin: Origin
let gateway: TestGateway
let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-access-keys-'))
  issuer = await startIssuer([await createKey('first')])
  origin = await startOrigin()
})
afterEach(async () => {
  await gateway.close()
  await Promise.all([issuer.close(), origin.close()])
})

const configured = (access: Tree): Tree => ({
  services: { api: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] }, access } },
})
const jwt = (more: Tree = {}): Tree => ({ jwks: issuer.url, issuer: issuerName, audience, ...more })
const start = async (access: Tree): Promise<void> => {
  gateway = await startTestGateway(configured(access))
}
const ask = async (token?: string, headerLines: Record<string, string> = {}): Promise<Response> => {
  const headers = token === undefined ? headerLines : { ...headerLines, Authorization: `Bearer ${token}` }
  const response = await fetch(`${gateway.publicAddress}/x`, { headers })
  await response.arrayBuffer()
  return response
}
const statusOf = async (token: string): Promise<number> => (await ask(token)).status
const fetched = (result: string): Promise<number> =>
  gateway.metric('trellis_jwks_fetches_total', `result="${result}"`)

const respond =
  (status: number, content: string | Buffer, headers: Record<string, string> = {}): Script =>
  (_, wire) =>
    wire.respond({ status, content, headers })

const faults: readonly (readonly [string, string, () => Script])[] = [
  ['answers 500', 'status', () => respond(500, '{"keys":[]}')],
  ['redirects', 'status', () => respond(302, '', { Location: `${origin.origin}/jwks.json` })],
  ['sends no JSON', 'not-jwks', () => respond(200, '<html>')],
  ['sends JSON without keys', 'not-jwks', () => respond(200, '{"keys":{}}')],
  [
    'sends a huge list',
    'too-large',
    () => respond(200, JSON.stringify({ keys: [], pad: 'x'.repeat(70_000) })),
  ],
  [
    'sends more than 100 keys',
    'not-jwks',
    () => respond(200, JSON.stringify({ keys: Array.from({ length: 101 }, () => ({})) })),
  ],
  ['breaks off', 'unreachable', () => (_, wire) => wire.reset()],
]

describe('keys of an issuer', () => {
  test('a token without kid that is signed by a new key makes the gateway fetch the keys', async () => {
    await start({ jwt: jwt() })
    const anonymous = { header: { kid: undefined } }
    expect(await statusOf(await issuer.token(anonymous))).toBe(200)
    const next = await createKey('second')
    issuer.keys.push(next)
    expect(await statusOf(await issuer.token(anonymous, next))).toBe(200)
    expect(await statusOf(await issuer.token(anonymous))).toBe(200)
    expect(await fetched('ok')).toBe(2)
  })

  test.each(faults)(
    'an issuer that %s: 503 for tokens, nothing upstream (%s)',
    async (_fault, result, script) => {
      issuer.server.script = script()
      await start({ jwt: jwt({ required: 'writes' }) })
      const response = await ask(await issuer.token())
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('5')
      expect(origin.received).toEqual([])
      expect(await fetched(result)).toBe(1)
      // What needs no token goes on.
      expect((await ask()).status).toBe(200)
    },
  )

  test('an issuer that is slow: 503 after five seconds, one fetch for all', async () => {
    issuer.server.script = () => new Promise(() => {})
    await start({ jwt: jwt() })
    const token = await issuer.token()
    expect(await Promise.all([statusOf(token), statusOf(token), statusOf(token)])).toEqual([503, 503, 503])
    expect(issuer.server.received).toHaveLength(1)
    expect(await fetched('timeout')).toBe(1)
  })

  test('an issuer that sends its keys byte by byte: the time limit is for the whole list', async () => {
    issuer.server.script = async (_, wire) => {
      wire.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
      for (let i = 0; i < 100 && !wire.socket.destroyed; i += 1) {
        wire.write(' ')
        await pause(100)
      }
    }
    await start({ jwt: jwt() })
    expect(await statusOf(await issuer.token())).toBe(503)
    expect(await fetched('timeout')).toBe(1)
  })

  test('requests that arrive before the keys wait for them', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    issuer.server.script = async (request, wire, count) => {
      await held
      await issuer.lists(request, wire, count)
    }
    await start({ jwt: jwt() })
    const asked = [issuer.token(), issuer.token()].map(async (token) => statusOf(await token))
    await issuer.server.until(() => issuer.server.received.length === 1)
    release()
    expect(await Promise.all(asked)).toEqual([200, 200])
    expect(issuer.server.received).toHaveLength(1)
  })

  test('a new key is fetched when its first token comes, without a restart', async () => {
    await start({ jwt: jwt() })
    expect(await statusOf(await issuer.token())).toBe(200)
    issuer.keys = [await createKey('next'), ...issuer.keys]
    expect(await statusOf(await issuer.token())).toBe(200)
    expect(issuer.server.received).toHaveLength(2)
  })

  test('a flood of unknown keys causes one fetch', async () => {
    await start({ jwt: jwt() })
    expect(await statusOf(await issuer.token())).toBe(200)
    const stranger = await createKey('stranger')
    const flood = Array.from({ length: 40 }, async (_, index) =>
      statusOf(await issuer.token({ header: { kid: `kid-${index}` } }, stranger)),
    )
    expect(new Set(await Promise.all(flood))).toEqual(new Set([401]))
    expect(issuer.server.received).toHaveLength(2)
    expect(await statusOf(await issuer.token())).toBe(200)
  })

  test('a removed key is refused after the next refresh, also for tokens that were verified before', async () => {
    await start({ jwt: jwt({ refresh: '1s' }) })
    const token = await issuer.token()
    expect(await statusOf(token)).toBe(200)
    issuer.keys = [await createKey('next')]
    await expect.poll(() => statusOf(token), { interval: 100 }).toBe(401)
    expect(await statusOf(await issuer.token())).toBe(200)
  })

  test('after a pause of two refreshes a removed key is not used once more', async () => {
    await start({ jwt: jwt({ refresh: '1s' }) })
    const token = await issuer.token()
    expect(await statusOf(token)).toBe(200)
    issuer.keys = [await createKey('next')]
    await pause(2_100)
    expect(await statusOf(token)).toBe(401)
  })

  test('keys are kept while the issuer is down', async () => {
    await start({ jwt: jwt({ refresh: '1s' }) })
    expect(await statusOf(await issuer.token())).toBe(200)
    issuer.server.script = (_, wire) => wire.reset()
    await pause(1_100)
    expect(await statusOf(await issuer.token())).toBe(200)
    await expect.poll(() => fetched('unreachable')).toBe(1)
    await pause(1_100)
    expect(await statusOf(await issuer.token())).toBe(200)
    expect(await fetched('unreachable')).toBe(1)
  })

  test('secret and private keys in the list verify nothing', async () => {
    const oct = { kty: 'oct', kid: 'first', alg: 'HS256', k: Buffer.from('secret').toString('base64url') }
    issuer.server.script = respond(200, JSON.stringify({ keys: [oct] }))
    await start({ jwt: jwt() })
    expect(await statusOf(issuer.symmetric('secret'))).toBe(401)
    expect(await statusOf(await issuer.token())).toBe(401)
  })

  test('keys can come from a file, and need no network', async () => {
    const file = join(folder, 'jwks.json')
    await writeFile(file, JSON.stringify({ keys: issuer.keys.map(({ jwk }) => jwk) }))
    await start({ jwt: jwt({ jwks: `file:${file}` }) })
    expect(await statusOf(await issuer.token())).toBe(200)
    expect(await statusOf(await issuer.token({}, await createKey('other')))).toBe(401)
    expect(issuer.server.received).toEqual([])
  })

  test('a verified token costs no verification again, until it expires', async () => {
    await start({ jwt: jwt({ leeway: '0s' }) })
    const token = await issuer.token({ expiresIn: 2 })
    expect(await statusOf(token)).toBe(200)
    expect(await statusOf(token)).toBe(200)
    await expect.poll(() => statusOf(token), { interval: 200 }).toBe(401)
  })
})

describe('a reload', () => {
  test('with another file of API keys admits the new key and refuses the old one; stored responses stay', async () => {
    const file = join(folder, 'keys')
    await writeFile(file, keyLine('old', 'key-1'))
    origin.script = (_, wire) =>
      wire.respond({ headers: { 'Cache-Control': 'public, max-age=60' }, content: 'stored' })
    const service = {
      contract: 'open',
      mount: '/',
      upstream: { targets: [origin.origin] },
      cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
      access: { apiKeys: { file, required: 'all' } },
    }
    gateway = await startTestGateway({ services: { api: service } })
    expect((await ask(undefined, { 'X-Api-Key': 'key-1' })).status).toBe(200)
    await writeFile(file, keyLine('new', 'key-2'))
    expect(await gateway.put({ services: { api: service } })).toMatchObject({ kind: 'applied' })
    expect((await ask(undefined, { 'X-Api-Key': 'key-1' })).status).toBe(401)
    expect((await ask(undefined, { 'X-Api-Key': 'key-2' })).status).toBe(200)
    expect(origin.received).toHaveLength(1)
  })

  test('that leaves the issuer as it is keeps its keys; another audience holds at once', async () => {
    await start({ jwt: jwt() })
    const token = await issuer.token()
    expect(await statusOf(token)).toBe(200)
    await gateway.put(configured({ deny: ['192.0.2.1'], jwt: jwt() }))
    expect(await statusOf(token)).toBe(200)
    expect(issuer.server.received).toHaveLength(1)
    await gateway.put(configured({ jwt: jwt({ audience: 'shop' }) }))
    expect(await statusOf(token)).toBe(401)
    await gateway.put(configured({}))
    expect((await ask()).status).toBe(200)
    await gateway.put(configured({ deny: ['127.0.0.1'] }))
    expect((await ask()).status).toBe(403)
  })
})
