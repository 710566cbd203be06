import { mkdtemp, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportSPKI, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { audience, createKey, type Issuer, issuerName, keyLine, startIssuer } from '../support/issuer.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

/** Header lines in the order in which they are sent; a name may occur twice. */
type Lines = readonly (readonly [name: string, value: string])[]
type Sent = {
  readonly method?: string
  readonly path?: string
  readonly lines?: Lines
  readonly body?: string
}
type Responded = { readonly status: number; readonly challenge: string; readonly body: string }

let folder: string
let issuer: Issuer
let origin: Origin
let gateway: TestGateway

const jsonHeaders = { 'Content-Type': 'application/json; charset=UTF-8' }
const site = '/index.php/site-json'

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-access-'))
  const file = join(folder, 'keys')
  await writeFile(file, `# partners\n${keyLine('partner', 'key-of-partner')}\n`)
  issuer = await startIssuer([await createKey('first'), await createKey('second', 'RS256')])
  origin = await startOrigin((_, wire) => wire.respond({ headers: jsonHeaders, content: '{"id":1}' }))
  const jwt = {
    jwks: issuer.url,
    issuer: issuerName,
    audience,
    leeway: '10s',
    forward: { sub: 'X-User-Id', roles: 'X-Roles' },
  }
  const upstream = { targets: [origin.origin] }
  gateway = await startTestGateway({
    trustedProxies: ['127.0.0.2'],
    services: {
      api: { contract: 'open', mount: '/api', upstream, access: { jwt: { ...jwt, required: 'all' } } },
      field: {
        contract: 'open',
        mount: '/field',
        upstream,
        access: { jwt: { ...jwt, header: 'X-Jwt', required: 'writes' } },
      },
      keys: { contract: 'open', mount: '/keys', upstream, access: { apiKeys: { file, required: 'all' } } },
      addresses: {
        contract: 'open',
        mount: '/addresses',
        upstream,
        access: { allow: ['127.0.0.0/8', '10.0.0.0/8', '2001:db8::/32'], deny: ['10.6.6.0/24', '127.6.6.6'] },
      },
      site: siteService(origin.origin, {
        mount: site,
        access: { jwt: { ...jwt, required: 'writes' } },
      }),
      plants: { contract: 'plants', mount: '/plant-store', upstream, access: { allow: ['10.0.0.0/8'] } },
    },
  })
})
afterAll(async () => {
  await gateway.close()
  await Promise.all([issuer.close(), origin.close()])
})
beforeEach(() => {
  origin.received.length = 0
})

/** `from`: the local address of the connection. */
const send = (
  { method = 'GET', path = '/api/x', lines = [], body }: Sent,
  from = '127.0.0.1',
): Promise<Responded> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(gateway.publicAddress)
    const headers = [['Host', 'gateway.test'], ...lines].flat()
    if (body !== undefined)
      headers.push('Content-Type', 'application/json', 'Content-Length', `${body.length}`)
    const outgoing = httpRequest(
      { host: hostname, port, method, path, headers, localAddress: from, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            challenge: response.headers['www-authenticate'] ?? '',
            body: Buffer.concat(chunks).toString(),
          }),
        )
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })

const bearer = (token: string): Lines => [['Authorization', `Bearer ${token}`]]
const withToken = async (make: () => string | Promise<string>): Promise<Sent> => ({
  lines: bearer(await make()),
})
const seconds = (): number => Math.floor(Date.now() / 1000)

/** A key of an attacker, who signs with it correctly. */
const attackerToken = async (header: Readonly<Record<string, unknown>>): Promise<string> => {
  const { privateKey } = await generateKeyPair('ES256')
  return new SignJWT({ iss: issuerName, aud: audience, sub: 'root', exp: seconds() + 300 })
    .setProtectedHeader({ alg: 'ES256', ...header })
    .sign(privateKey)
}
const attackerJwk = async () => (await createKey('attacker')).jwk

type Row = readonly [attack: string, status: number, reason: string, make: () => Promise<Sent>]

const tokenAttacks: readonly Row[] = [
  ['no token', 401, 'token-missing', async () => ({})],
  ['an empty Authorization', 401, 'token-missing', async () => ({ lines: [['Authorization', '']] })],
  ['another scheme', 401, 'token-missing', async () => ({ lines: [['Authorization', 'Basic YTpi']] })],
  [
    'a good token without its scheme',
    401,
    'token-malformed',
    async () => ({ lines: [['Authorization', await issuer.token()]] }),
  ],
  [
    'a good token without its scheme, behind more beginnings of tokens than are read',
    401,
    'token-malformed',
    async () => ({ lines: [['Authorization', `${'eyJ.'.repeat(40)} ${await issuer.token()}`]] }),
  ],
  ['the scheme alone', 401, 'token-malformed', async () => ({ lines: [['Authorization', 'Bearer']] })],
  ['text that is no token', 401, 'token-malformed', () => withToken(() => 'hello')],
  ['two parts', 401, 'token-malformed', () => withToken(() => 'e30.e30')],
  ['a header that is not JSON', 401, 'token-malformed', () => withToken(() => 'aGVsbG8.e30.c2ln')],
  ['an encrypted token (five parts)', 401, 'token-malformed', () => withToken(() => 'e30.e30.e30.e30.e30')],
  [
    'two tokens with a comma in one field',
    401,
    'token-malformed',
    () => withToken(async () => `${await issuer.token()}, ${await issuer.token()}`),
  ],
  [
    'a bad token in front of a good one, in two lines',
    401,
    'token-malformed',
    async () => ({ lines: [...bearer('bad'), ...bearer(await issuer.token())] }),
  ],
  [
    'a good token in the query',
    401,
    'token-missing',
    async () => ({ path: `/api/x?access_token=${await issuer.token()}` }),
  ],
  [
    'a good token in a cookie',
    401,
    'token-missing',
    async () => ({ lines: [['Cookie', `token=${await issuer.token()}`]] }),
  ],
  [
    'a good token named away by Connection, in another field',
    401,
    'token-missing',
    async () => ({
      lines: [
        ['Connection', 'X-Jwt'],
        ['X-Jwt', await issuer.token()],
      ],
    }),
  ],
  [
    'alg none without a signature',
    401,
    'token-malformed',
    () => withToken(() => issuer.forged({ alg: 'none' }, {}, '')),
  ],
  ['alg none with a signature', 401, 'algorithm', () => withToken(() => issuer.forged({ alg: 'none' }))],
  ['alg nOnE', 401, 'algorithm', () => withToken(() => issuer.forged({ alg: 'nOnE' }))],
  ['no alg', 401, 'algorithm', () => withToken(() => issuer.forged({ kid: 'first' }))],
  ['alg as a list', 401, 'algorithm', () => withToken(() => issuer.forged({ alg: ['ES256'] }))],
  [
    'HS256 with the public key as its secret',
    401,
    'algorithm',
    () =>
      withToken(async () => {
        const { publicKey } = await generateKeyPair('RS256')
        return issuer.symmetric(await exportSPKI(publicKey))
      }),
  ],
  [
    'HS256 with the JWK as its secret',
    401,
    'algorithm',
    () => withToken(() => issuer.symmetric(JSON.stringify(issuer.keys[1]?.jwk))),
  ],
  [
    'an asymmetric algorithm that is not configured',
    401,
    'algorithm',
    () => withToken(() => issuer.forged({ alg: 'PS256' })),
  ],
  [
    'a forged signature',
    401,
    'signature',
    () => withToken(() => issuer.forged({ alg: 'ES256', kid: 'first' })),
  ],
  [
    'changed claims under a good signature',
    401,
    'signature',
    () =>
      withToken(async () => {
        const [header, , signature] = (await issuer.token()).split('.')
        const [, claims] = (await issuer.token({ claims: { sub: 'root' } })).split('.')
        return `${header}.${claims}.${signature}`
      }),
  ],
  [
    'an EC signature for the kid of the RSA key',
    401,
    'unknown-key',
    () => withToken(() => issuer.token({ header: { kid: 'second' } })),
  ],
  [
    'a key embedded in the header (jwk)',
    401,
    'signature',
    () => withToken(async () => attackerToken({ kid: 'first', jwk: await attackerJwk() })),
  ],
  [
    'a key by reference (jku)',
    401,
    'signature',
    () => withToken(() => attackerToken({ kid: 'first', jku: `${origin.origin}/jwks.json` })),
  ],
  [
    'a certificate by reference (x5u)',
    401,
    'signature',
    () => withToken(() => attackerToken({ kid: 'first', x5u: `${origin.origin}/cert.pem` })),
  ],
  ["an attacker's key without a kid", 401, 'signature', () => withToken(() => attackerToken({}))],
  [
    'kid as a path',
    401,
    'unknown-key',
    () => withToken(() => attackerToken({ kid: '../../../../dev/null' })),
  ],
  ['kid as a query', 401, 'unknown-key', () => withToken(() => attackerToken({ kid: "x' OR '1'='1" }))],
  ['kid __proto__', 401, 'unknown-key', () => withToken(() => attackerToken({ kid: '__proto__' }))],
  ['kid as a number', 401, 'token-malformed', () => withToken(() => issuer.forged({ alg: 'ES256', kid: 1 }))],
  [
    'an unknown critical extension',
    401,
    'token-malformed',
    () =>
      withToken(() => issuer.token({ header: { crit: ['urn:example:unknown'], 'urn:example:unknown': 1 } })),
  ],
  ['an expired token', 401, 'expired', () => withToken(() => issuer.token({ expiresIn: -11 }))],
  [
    'a token that never expires',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { exp: undefined } })),
  ],
  [
    'exp as a text',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { exp: `${seconds() + 300}` } })),
  ],
  [
    'a token of the future',
    401,
    'not-yet-valid',
    () => withToken(() => issuer.token({ claims: { nbf: seconds() + 60 } })),
  ],
  [
    'another issuer',
    401,
    'issuer',
    () => withToken(() => issuer.token({ claims: { iss: 'https://id.example.evil' } })),
  ],
  ['no issuer', 401, 'issuer', () => withToken(() => issuer.token({ claims: { iss: undefined } }))],
  ['another audience', 401, 'audience', () => withToken(() => issuer.token({ claims: { aud: 'blogs' } }))],
  ['no audience', 401, 'audience', () => withToken(() => issuer.token({ claims: { aud: undefined } }))],
  [
    'a list of other audiences',
    401,
    'audience',
    () => withToken(() => issuer.token({ claims: { aud: ['a', 'b'] } })),
  ],
  [
    'a line break in a forwarded claim',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { sub: 'ann\r\nX-Admin: 1' } })),
  ],
  [
    'a NUL in a forwarded claim',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { sub: 'ann\0' } })),
  ],
  [
    'an object in a forwarded claim',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { sub: { a: 1 } } })),
  ],
  [
    'a comma within a forwarded list',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { roles: ['a,admin'] } })),
  ],
  [
    'a number that was rounded in a forwarded claim',
    401,
    'claim',
    () => withToken(() => issuer.token({ claims: { sub: 2 ** 53 } })),
  ],
  ['a huge token', 401, 'token-too-large', () => withToken(() => `${'a'.repeat(9_000)}.e30.c2ln`)],
  [
    'two tokens in two lines of another field',
    401,
    'token-malformed',
    async () => ({
      path: '/field/x',
      lines: [
        ['X-Jwt', await issuer.token()],
        ['X-Jwt', await issuer.token()],
      ],
    }),
  ],
  [
    'a bad token on a request that needs none',
    401,
    'token-malformed',
    async () => ({ path: '/field/x', lines: [['X-Jwt', 'bad']] }),
  ],
  [
    'a write without a token',
    401,
    'token-missing',
    async () => ({ method: 'POST', path: '/field/x', body: '{}' }),
  ],
  [
    'an unknown method without a token',
    401,
    'token-missing',
    async () => ({ method: 'PROPFIND', path: '/field/x' }),
  ],
  [
    '_method=DELETE on GET, which WordPress takes for a write',
    401,
    'token-missing',
    async () => ({ path: '/field/wp-json/wp/v2/posts/1?_method=DELETE' }),
  ],
  [
    'a GET that runs the scheduled tasks',
    401,
    'token-missing',
    async () => ({ path: '/field/wp-cron%2Ephp' }),
  ],
  [
    'a write of a site by X-HTTP-Method-Override',
    401,
    'token-missing',
    async () => ({
      method: 'POST',
      path: `${site}/site/v2/posts/1`,
      lines: [['X-HTTP-Method-Override', 'DELETE']],
      body: '{}',
    }),
  ],
  [
    'a write of a site by _method',
    401,
    'token-missing',
    async () => ({ method: 'POST', path: `${site}/site/v2/posts/1?_method=PUT`, body: '{}' }),
  ],
]

const keyAttacks: readonly Row[] = [
  ['no API key', 401, 'api-key-missing', async () => ({ path: '/keys/x' })],
  [
    'an unknown API key',
    401,
    'api-key-unknown',
    async () => ({ path: '/keys/x', lines: [['X-Api-Key', 'guess']] }),
  ],
  ['an empty API key', 401, 'api-key-unknown', async () => ({ path: '/keys/x', lines: [['X-Api-Key', '']] })],
  [
    'a huge API key',
    401,
    'api-key-unknown',
    async () => ({ path: '/keys/x', lines: [['X-Api-Key', 'k'.repeat(9_000)]] }),
  ],
  [
    'the digest in place of the API key',
    401,
    'api-key-unknown',
    async () => ({ path: '/keys/x', lines: [['X-Api-Key', keyLine('', 'key-of-partner').slice(1)]] }),
  ],
  [
    'an API key in two lines',
    401,
    'api-key-unknown',
    async () => ({
      path: '/keys/x',
      lines: [
        ['X-Api-Key', 'guess'],
        ['X-Api-Key', 'key-of-partner'],
      ],
    }),
  ],
  [
    'X_Api_Key',
    401,
    'api-key-missing',
    async () => ({ path: '/keys/x', lines: [['X_Api_Key', 'key-of-partner']] }),
  ],
  [
    'an API key in the query',
    401,
    'api-key-missing',
    async () => ({ path: '/keys/x?X-Api-Key=key-of-partner' }),
  ],
]

const challengeOf = (reason: string): RegExp => {
  if (reason === 'token-missing') return /^Bearer realm="\w+"$/
  return reason.startsWith('api-key') ? /^ApiKey realm="keys"$/ : /^Bearer realm="\w+", error="invalid_token"/
}

const refusals = (reason: string): Promise<number> =>
  gateway.metric('trellis_access_refused_total', `reason="${reason}"`)

describe('a request that access refuses', () => {
  test.each([...tokenAttacks, ...keyAttacks])('%s: %i, %s', async (_attack, status, reason, make) => {
    const sent = await make()
    const responded = await send(sent)
    expect(responded.status).toBe(status)
    expect(responded.challenge).toMatch(challengeOf(reason))
    expect(origin.received).toEqual([])
    const service = (sent.path ?? '/api').split('/')[1]?.replace('index.php', 'site')
    expect(
      await gateway.metric('trellis_access_refused_total', `service="${service}"`, `reason="${reason}"`),
    ).toBeGreaterThan(0)
    // The token is in no response.
    for (const [, value] of sent.lines ?? [])
      if (value.length > 20) expect(responded.body).not.toContain(value)
  })

  test('there are at least 40 attacks on tokens', () =>
    expect(tokenAttacks.length).toBeGreaterThanOrEqual(40))

  test('has the shape of its service', async () => {
    const open = await send({})
    expect(JSON.parse(open.body)).toMatchObject({ status: 401, code: 'credential_missing' })
    const ofSite = await send({ method: 'DELETE', path: `${site}/site/v2/posts/1` })
    expect(JSON.parse(ofSite.body)).toMatchObject({
      code: 'trellis_credential_missing',
      data: { status: 401 },
    })
    const ofPlants = await send({ path: '/plant-store/plants', lines: bearer('t') })
    expect(ofPlants.status).toBe(403)
    expect(JSON.parse(ofPlants.body)).toMatchObject({ error: 403 })
  })

  test('learns nothing about routes', async () => {
    const known = await send({ path: '/plant-store/plants' })
    const unknown = await send({ path: '/plant-store/nothing', method: 'PATCH' })
    expect(unknown).toEqual(known)
  })

  test('a refusal is not stored, and every reason has a series from the start', async () => {
    expect(await refusals('keys-unavailable')).toBe(0)
    const text = await (await fetch(`${gateway.adminAddress}/metrics`)).text()
    expect(text).toContain('trellis_access_refused_total{service="addresses",reason="issuer"} 0')
    expect(text).toContain('trellis_jwks_fetches_total{service="api",result="timeout"} 0')
  })
})

const addressRows: readonly (readonly [string, number, Lines, from: string])[] = [
  ['an allowed peer', 200, [], '127.0.0.1'],
  ['a denied peer in an allowed network', 403, [], '127.6.6.6'],
  [
    'X-Forwarded-For of an untrusted peer that is denied',
    403,
    [['X-Forwarded-For', '10.1.1.1']],
    '127.6.6.6',
  ],
  ['Forwarded of an untrusted peer that is denied', 403, [['Forwarded', 'for=10.1.1.1']], '127.6.6.6'],
  ['X-Real-IP of an untrusted peer that is denied', 403, [['X-Real-IP', '10.1.1.1']], '127.6.6.6'],
  ['an allowed client of a trusted proxy', 200, [['X-Forwarded-For', '10.1.1.1']], '127.0.0.2'],
  ['a denied client of a trusted proxy', 403, [['X-Forwarded-For', '10.6.6.1']], '127.0.0.2'],
  ['a client outside of all lists', 403, [['X-Forwarded-For', '192.0.2.1']], '127.0.0.2'],
  [
    'a denied client that invents an allowed address',
    403,
    [['X-Forwarded-For', '10.1.1.1, 10.6.6.1']],
    '127.0.0.2',
  ],
  ['a denied client in IPv4-mapped form', 403, [['X-Forwarded-For', '::ffff:10.6.6.1']], '127.0.0.2'],
  [
    'a denied client in IPv4-mapped hexadecimal form',
    403,
    [['X-Forwarded-For', '::ffff:a06:601']],
    '127.0.0.2',
  ],
  [
    'a denied client in long IPv4-mapped form',
    403,
    [['X-Forwarded-For', '0:0:0:0:0:ffff:10.6.6.1']],
    '127.0.0.2',
  ],
  ['an allowed IPv6 client', 200, [['X-Forwarded-For', '2001:db8::1']], '127.0.0.2'],
  ['an allowed IPv6 client in another spelling', 200, [['X-Forwarded-For', '2001:0DB8:0:0::1']], '127.0.0.2'],
  ['an IPv6 client outside', 403, [['X-Forwarded-For', '2001:db9::1']], '127.0.0.2'],
  ['an IPv6 client with a zone', 403, [['X-Forwarded-For', 'fe80::1%eth0']], '127.0.0.2'],
]

test.each(addressRows)('addresses: %s gets %i', async (_description, status, lines, from) => {
  const responded = await send({ path: '/addresses/x', lines }, from)
  expect(responded.status).toBe(status)
  expect(origin.received).toHaveLength(status === 200 ? 1 : 0)
})

const received = () => origin.received.at(-1)?.headers ?? {}

describe('a request that access admits', () => {
  test.each<[string, () => Promise<Sent>]>([
    ['bearer in lower case', async () => ({ lines: [['authorization', `bearer ${await issuer.token()}`]] })],
    ['two spaces', async () => ({ lines: [['Authorization', `BEARER  ${await issuer.token()}`]] })],
    ['an RSA key', () => withToken(() => issuer.token({}, issuer.keys[1]))],
    ['no kid where one key fits', () => withToken(() => issuer.token({ header: { kid: undefined } }))],
    ['an audience among several', () => withToken(() => issuer.token({ claims: { aud: ['x', audience] } }))],
    ['an expiry within the leeway', () => withToken(() => issuer.token({ expiresIn: -5 }))],
    ['a begin within the leeway', () => withToken(() => issuer.token({ claims: { nbf: seconds() + 5 } }))],
    [
      'a second Authorization, which is dropped',
      async () => ({ lines: [...bearer(await issuer.token()), ...bearer('bad')] }),
    ],
    [
      'another field',
      async () => ({ method: 'POST', path: '/field/x', lines: [['X-Jwt', await issuer.token()]] }),
    ],
    ['a read that needs no token', async () => ({ path: '/field/x' })],
    ['a HEAD that needs no token', async () => ({ path: '/field/x', method: 'HEAD' })],
    ['an OPTIONS that needs no token', async () => ({ path: '/field/x', method: 'OPTIONS' })],
    ['an API key', async () => ({ path: '/keys/x', lines: [['X-Api-Key', 'key-of-partner']] })],
    ['a read of a site without a token', async () => ({ path: `${site}/site/v2/posts` })],
  ])('%s', async (_description, make) => {
    expect(await send(await make())).toMatchObject({ status: 200 })
    expect(origin.received).toHaveLength(1)
  })

  test('a token is forwarded, an API key is not', async () => {
    const token = await issuer.token()
    await send({ lines: [...bearer(token), ...bearer('bad')] })
    expect(received()['authorization']).toBe(`Bearer ${token}`)
    await send({ path: '/keys/x', lines: [['X-Api-Key', 'key-of-partner']] })
    expect(origin.received).toHaveLength(2)
    expect(JSON.stringify(received())).not.toContain('key-of-partner')
  })

  test.each<[string, Lines]>([
    ['the field itself', [['X-User-Id', 'root']]],
    [
      'twice',
      [
        ['X-User-Id', 'root'],
        ['x-user-id', 'admin'],
      ],
    ],
    ['underscores', [['X_User_Id', 'root']]],
    [
      'a mixture',
      [
        ['X_User-Id', 'root'],
        ['X.User.Id', 'root'],
      ],
    ],
    [
      'named away by Connection',
      [
        ['Connection', 'X-User-Id, X-Roles'],
        ['X-User-Id', 'root'],
      ],
    ],
  ])(
    'the upstream sees claims of the token, never what the client sent in their stead: %s',
    async (_how, lines) => {
      const token = await issuer.token({ claims: { roles: ['editor', 'author'] } })
      await send({ lines: [...bearer(token), ...lines] })
      expect(received()).toMatchObject({ 'x-user-id': 'ann', 'x-roles': 'editor,author' })
      const names = Object.keys(received()).map((name) => name.replace(/[_.]/g, '-'))
      expect(names.filter((name) => name === 'x-user-id')).toHaveLength(1)
      await send({ path: '/field/x', lines })
      expect(origin.received).toHaveLength(2)
      expect(JSON.stringify(received())).not.toMatch(/root|admin/)
    },
  )

  test('a claim that the token lacks leaves no header', async () => {
    await send({ lines: [...bearer(await issuer.token()), ['X-Roles', 'admin']] })
    expect(received()).toMatchObject({ 'x-user-id': 'ann' })
    expect(received()['x-roles']).toBeUndefined()
  })
})

const jwtLike = (): string => issuer.forged({ alg: 'ES256', kid: 'first' })

test.each<[string, (token: string) => string]>([
  ['a tab', (token) => `Bearer\t${token}`],
  ['no scheme', (token) => token],
  ['JWT', (token) => `JWT ${token}`],
  ['Token', (token) => `Token ${token}`],
  ['a comma', (token) => `Bearer,${token}`],
  ['an equal sign', (token) => `Bearer=${token}`],
  ['another scheme in front', (token) => `Basic eA==, Bearer ${token}`],
  ['a comma in front', (token) => `, Bearer ${token}`],
  ['no space', (token) => `Bearer${token}`],
  ['quotes', (token) => `Token token="${token}"`],
  ['DPoP', (token) => `DPoP ${token}`],
  ['an opaque token behind another scheme', () => 'Basic eA==, bearer abc'],
  ['a header that is no JSON', (token) => `JWT x.${token.split('.')[1]}.x`],
])('a token that is not sent as `Bearer TOKEN` is refused: %s', async (_, make) => {
  const sent = { path: `${site}/site/v2/posts/1`, lines: [['Authorization', make(jwtLike())]] as Lines }
  expect((await send(sent)).status).toBe(401)
  expect(origin.received).toEqual([])
})

test.each([
  'Basic YW5uOmFiY2QgZWZnaCBpamts',
  'Digest username="a", realm="example.api.org"',
  'Token abc.def',
])('another scheme is for the upstream: %s', async (value) => {
  await send({ path: `${site}/site/v2/posts/1`, lines: [['Authorization', value]] })
  expect(origin.received[0]?.headers['authorization']).toBe(value)
})
