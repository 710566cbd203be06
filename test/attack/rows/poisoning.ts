import { generateKeyPairSync } from 'node:crypto'
import type { Script } from '../../support/origin.ts'
import { type AttackRow, faultsOf, row, type Tree } from '../attack-row.ts'
import { ask, attacker, type Question } from '../clients.ts'
import { originOf, type Scene, scriptedOrigin } from '../scene.ts'
import { openService } from '../services.ts'

// What one caller sends must not decide what another one gets.

const names = 'accept-language'

/** Header names as PHP shows them to programs: `_` and `-` are one, and the last one wins. */
const folded = (head: string): Map<string, string> =>
  new Map(
    head
      .split('\r\n')
      .slice(1)
      .map((line) => {
        const colon = line.indexOf(':')
        return [
          line.slice(0, colon).toLowerCase().replaceAll('_', '-'),
          line.slice(colon + 1).trim(),
        ] as const
      }),
  )

/** Responses with the value of the header that `Vary` names: `/x?vary=NAME`. */
const varying: Script = ({ target, head }, wire) => {
  const name = /vary=([A-Za-z-]+)/.exec(target)?.[1] ?? names
  wire.respond({
    headers: { 'Content-Type': 'text/plain', 'Cache-Control': 'max-age=60', Vary: name },
    content: `for ${folded(head).get(name.toLowerCase()) ?? 'none'}`,
  })
}

const scripted =
  (script: Script, more: Tree = {}) =>
  async (scene: Pick<Scene, 'upstream' | 'resources'>): Promise<Tree> => {
    const origin = await scriptedOrigin(scene, script)
    return {
      services: {
        open: openService(scene.upstream),
        echo: {
          contract: 'open',
          mount: '/echo',
          upstream: { targets: [origin.origin] },
          cache: { rules: [{ match: 'GET /**', ttl: '1m' }] },
        },
      },
      ...more,
    }
  }

type Poison = {
  readonly title: string
  readonly vary: string
  readonly first: Question['headers']
  readonly second: Question['headers']
  /** What the second caller must get, or one of several; none: what it gets where no one else has asked before. */
  readonly right: readonly string[]
  /** Address of the second caller. */
  readonly from?: string
}

const german = { 'Accept-Language': 'de' }
const connectionPoison = (title: string, option: string): Poison => ({
  title,
  vary: 'Accept-Language',
  first: { ...german, Connection: option },
  second: german,
  right: ['for de'],
})
const underscore = (
  spelling: string,
  vary: string,
  value: string,
  plain: Readonly<Record<string, string>>,
): Poison => ({
  title: spelling,
  vary,
  first: { ...plain, [spelling]: value },
  second: plain,
  right: [`for ${Object.values(plain)[0] ?? 'none'}`],
})
const forwarded = (
  name: string,
  one: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>>,
): Poison => ({
  title: `Vary: ${name}`,
  vary: name,
  first: one,
  second: other,
  right: [],
})

const poisons: readonly Poison[] = [
  connectionPoison('Connection: close, Accept-Language', 'close, Accept-Language'),
  connectionPoison('Connection: accept-language', 'accept-language'),
  connectionPoison('Connection: keep-alive,ACCEPT-LANGUAGE', 'keep-alive,ACCEPT-LANGUAGE'),
  {
    title: 'Connection: close, X-Group (its own field)',
    vary: 'X-Group',
    first: { 'X-Group': 'a', Connection: 'close, X-Group' },
    second: { 'X-Group': 'a' },
    right: ['for a'],
  },
  underscore('Accept_Language', 'Accept-Language', 'xx', german),
  underscore('ACCEPT_LANGUAGE', 'Accept-Language', 'xx', {}),
  underscore('User_Agent', 'User-Agent', 'poison', { 'User-Agent': 'reader' }),
  underscore('X_Group', 'X-Group', 'b', {}),
]

const addresses: readonly Poison[] = [
  forwarded('X-Forwarded-For', { 'X-Forwarded-For': '10.0.0.1' }, { 'X-Forwarded-For': '10.0.0.2' }),
  forwarded('Forwarded', { 'X-Forwarded-For': '10.0.0.1' }, { 'X-Forwarded-For': '10.0.0.2' }),
  forwarded('X-Forwarded-Proto', { 'X-Forwarded-Proto': 'http' }, { 'X-Forwarded-Proto': 'https' }),
  {
    title: 'Vary: X-Forwarded-For, from two addresses',
    vary: 'X-Forwarded-For',
    first: {},
    second: {},
    from: '127.0.0.4',
    right: [],
  },
  {
    title: 'Vary: Forwarded, from two addresses',
    vary: 'Forwarded',
    first: {},
    second: {},
    from: '127.0.0.4',
    right: [],
  },
  forwarded('Via', { Via: '1.1 a' }, { Via: '1.1 b' }),
  forwarded('X-Real-IP', { 'X-Real-IP': '10.0.0.1' }, { 'X-Real-IP': '10.0.0.2' }),
]

/** An upstream must have been asked for the second caller, or told the same: its own response to its own request is always right. */
const poisoned = async (scene: Scene, list: readonly Poison[]): Promise<readonly string[]> => {
  const origin = originOf(scene)
  const found: string[] = []
  let number = 0
  for (const { title, vary, first, second, right, from } of list) {
    number += 1
    const askSecond = (path: string) =>
      ask(scene.origin, path, { headers: second ?? {}, from: from ?? attacker })
    const askBoth = async (path: string): Promise<string> => {
      // More than once: with workers, each of them has a cache.
      for (let turn = 0; turn < 3; turn += 1) await ask(scene.origin, path, { headers: first ?? {} })
      return (await askSecond(path)).text
    }
    const alone = await askSecond(`/echo/alone${number}?vary=${vary}`)
    const expected = right.length > 0 ? right : [alone.text]
    for (let turn = 0; turn < 4; turn += 1) {
      const got = await askBoth(`/echo/both${number}-${turn}?vary=${vary}`)
      if (expected.includes(got)) continue
      found.push(`${title}: the second caller got "${got}", alone "${alone.text}"`)
      break
    }
  }
  if (origin.received.length === 0) found.push('the upstream was not asked at all')
  return found
}

/** Headers in which clients could tell an upstream another host, address, scheme, path or method. */
const notSentOn = [
  'X-HTTP-Host-Override',
  'Front-End-Https',
  'X-Url-Scheme',
  'X-Scheme',
  'X-Override-URL',
  'X-Method',
  'X-Forwarded',
  'Forwarded-For',
  'Fastly-Client-IP',
  'X-Azure-ClientIP',
  'X-AppEngine-User-IP',
  'X-ProxyUser-Ip',
  'WL-Proxy-Client-IP',
  'X-Remote-Addr',
  'X-Originating-IP',
  ...[
    'Akamai-Client-IP',
    'X-Envoy-Original-Host',
    'X-Rewrite-Path',
    'X-HTTP-Path-Override',
    'X-Tunnel-Method',
  ],
  // In no list.
  ...['Acme-Client-IP', 'X-Acme-Original-Host', 'X-Acme-Rewrite-Url', 'X-Url-Override', 'X-Visitor-Address'],
]

const credentials = [
  'X-Goog-Api-Key',
  'X-Goog-Authenticated-User-Email',
  'Ocp-Apim-Subscription-Key',
  'X-Amz-Security-Token',
  'X-Shopify-Access-Token',
  'X-GitLab-Token',
  'X-Vault-Token',
  'X-Pomerium-Jwt-Assertion',
  'X-Auth-Request-Email',
  'X-MS-Client-Principal-Id',
  'X-WebAuth-User',
  'X-Authentik-Username',
  'X-Client-Cert',
  'X-Session-Id',
  'X-CSRF-Token',
  'Cart-Token',
  'Woocommerce-Session',
  'Token',
  'X-Token',
  'X-JWT',
  // Fit the patterns and are in no list.
  'X-Acme-Token',
  'Acme-Api-Key',
  'X-Acme-User-Name',
  'X-Acme-Session-Key',
  'X-Acme-Auth-Level',
  'X-Acme-Jwt-Claims',
  'X-Acme-Cert-Subject',
  ...['X-App-Key', 'Key', 'Signature', 'X-Hmac', 'X-Otp', 'X-Pin', 'Sid', 'X-Uid', 'Login', 'X-Account-Id'],
  ...['X-Tenant', 'X-Org-Id', 'X-Client-DN', 'X-Cas-Ticket', 'X-Act-As', 'X-Roles', 'X-Groups', 'From'],
  // Fit no pattern: they are part of the key.
  ...['X-Kundennummer', 'Gold-Member', 'X-Plan', 'HX-Request', 'Cf-Access-Client-Id', 'L5d-Client-Id'],
]

/** Lines of a response after which no other client may get it. */
const forNobodyElse = [
  ...[
    'private; max-age=60',
    'no-store; x',
    'private max-age=60',
    'public;private',
    '"private"',
    'private\\, x',
  ],
  ...[
    'max-age=60, "no-store"',
    'max-age=60, no-store"',
    'max-age=60, ext="no-store',
    'max-age=60,\xa0private',
  ],
  ...['max-age=60, private=', 'max-age=60, (no-store)', 'max-age=60, ext="a\r\nCache-Control: no-store, b"'],
].map((value) => `Cache-Control: ${value}`)

const withTokens = [
  'Cart-Token',
  'Nonce',
  'X-CSRF-Token',
  'Authorization',
  'X-Session-Id',
  'X-Acme-Token',
].map((name) => `${name}: t\r\nCache-Control: public, max-age=60`)

/** Responses with the lines of that number and a number of its own: `/x?N`. */
const withLines: Script = ({ target }, wire, count) => {
  const lines = [...forNobodyElse, ...withTokens][Number(target.split('?')[1])] ?? 'X-None: 1'
  const content = `number ${count}`
  wire.write(`HTTP/1.1 200 OK\r\n${lines}\r\nContent-Length: ${content.length}\r\n\r\n${content}`)
}

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const keys = JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), alg: 'ES256', kid: 'a' }] })

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const claims = part({ sub: 'admin', iss: 'https://id.example', aud: 'a', exp: 4_102_444_800 })
const forgedToken = `${part({ alg: 'ES256', kid: 'a' })}.${claims}.${'A'.repeat(86)}`

/** In the header of the token: no upstream may get what the gateway has not verified. */
const forgedSpellings = [
  ...['Bearer\t{}', '{}', 'JWT {}', 'Token {}', 'Bearer,{}', 'Bearer={}', 'Basic eA==, Bearer {}'],
  ...[', Bearer {}', 'Bearer{}', 'Token token="{}"', 'DPoP {}', 'Bearer  {} x', 'x;Bearer {}', '"{}"'],
  ...['Bearer: {}', 'Bearer {}', 'bearer {}', 'Basic {}', 'JWT{}'],
].map((spelling) => spelling.replace('{}', forgedToken))

/** Responses with all that it was sent. */
const echoing: Script = ({ head }, wire) =>
  wire.respond({ headers: { 'Content-Type': 'text/plain' }, content: head })

const queryCredentials = [
  ...[
    'consumer_key',
    'consumer_secret',
    'oauth_signature',
    'oauth_token',
    'access_token',
    'api_key',
    'apikey',
  ],
  ...['token', 'signature', 'sig', 'X-Amz-Signature', 'X-Amz-Security-Token', 'X-Goog-Signature', 'API_KEY'],
]

const traceFields = [
  'baggage',
  'uberctx-user',
  'x-datadog-tags',
  'x-b3-user',
  'ot-baggage-user',
  'jaeger-baggage',
]

const poisoning = (name: string, description: string, list: readonly Poison[], more: Tree): AttackRow =>
  row<readonly string[]>({
    name,
    description,
    settings: scripted(varying, more),
    attack: (scene) => poisoned(scene, list),
    verdict: ({ found }) => faultsOf(found),
  })

const failingLeader: Script = async ({ head }, wire) => {
  await new Promise((resolve) => setTimeout(resolve, 300))
  const isLeader = /x-break/i.test(head)
  wire.respond({ status: isLeader ? 500 : 200, headers: { 'Content-Type': 'text/plain' }, content: 'x' })
}

export const poisoningRows: readonly AttackRow[] = [
  poisoning('variants', 'Connection options and names with _ select no other variant.', poisons, {}),
  poisoning('variants-workers', 'The same with two workers.', poisons, { workers: 2 }),
  poisoning(
    'variants-addresses',
    'Answers that vary on fields which the gateway writes itself are given to their caller only.',
    addresses,
    { trustedProxies: ['127.0.0.2/32'] },
  ),
  row<readonly string[]>({
    name: 'fields-sent-on',
    description: 'Fields that tell an upstream another host, address or method do not reach it.',
    settings: scripted(echoing),
    attack: async (scene) => {
      const found: string[] = []
      for (const name of notSentOn) {
        const { text } = await ask(scene.origin, `/echo/${name}`, { headers: { [name]: 'planted.test' } })
        if (text.includes('planted.test')) found.push(`${name} reached the upstream`)
      }
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  row<readonly string[]>({
    name: 'credential-fields',
    description:
      'An answer to a request with a field that looks like a credential is given to its caller only.',
    settings: scripted(echoing),
    attack: async (scene) => {
      const found: string[] = []
      for (const name of credentials) {
        const get = (value: string) =>
          ask(scene.origin, `/echo/${name}`, { headers: { [name]: value }, from: attacker })
        await get('first-caller')
        if ((await get('second-caller')).text.includes('first-caller')) found.push(`${name} is shared`)
      }
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  row<readonly string[]>({
    name: 'query-credentials',
    description: 'A response to a URL with a key, token or signature is not stored.',
    settings: scripted(withLines),
    attack: async (scene) => {
      const found: string[] = []
      for (const name of queryCredentials) {
        const target = `/echo/x?page=1&${name}=abc`
        const first = await ask(scene.origin, target, { from: attacker })
        const second = await ask(scene.origin, target, { from: attacker })
        if (first.text === second.text) found.push(`a response with ${name} is stored`)
      }
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  row<readonly string[]>({
    name: 'trace-fields',
    description: 'A field of a tracing library, which a page can set, is in no response for others.',
    settings: scripted(echoing),
    attack: async (scene) => {
      const found: string[] = []
      for (const name of traceFields) {
        const target = `/echo/${name}`
        await ask(scene.origin, target, { headers: { [name]: 'planted=1' }, from: attacker })
        if ((await ask(scene.origin, target)).text.includes('planted')) found.push(`${name} is shared`)
      }
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  row<readonly string[]>({
    name: 'responses-for-one',
    description:
      'A response whose Cache-Control cannot be read, or that carries a token, is given to its reader only.',
    settings: scripted(withLines),
    attack: async (scene) => {
      const found: string[] = []
      for (const [number, lines] of [...forNobodyElse, ...withTokens].entries()) {
        const texts = new Set<string>()
        for (let turn = 0; turn < 3; turn += 1) texts.add((await ask(scene.origin, `/echo/x?${number}`)).text)
        if (texts.size < 3) found.push(`"${lines}" is shared`)
      }
      const usual = await Promise.all([1, 2].map(() => ask(scene.origin, '/echo/x?usual')))
      if (usual[0]?.text !== usual[1]?.text) found.push('a response without such lines is not shared')
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  row<readonly string[]>({
    name: 'forged-tokens',
    description: 'A forged token reaches no upstream, however its Authorization is written.',
    settings: async (scene) => {
      const origin = await scriptedOrigin(scene, ({ target, head }, wire) =>
        wire.respond({ content: target === '/keys' ? keys : head }),
      )
      const jwt = { jwks: `${origin.origin}/keys`, issuer: 'https://id.example', audience: 'a' }
      const service = { contract: 'open', upstream: { targets: [origin.origin] } }
      return {
        services: {
          open: openService(scene.upstream),
          writes: { ...service, mount: '/writes', access: { jwt: { ...jwt, required: 'writes' } } },
          never: { ...service, mount: '/never', access: { jwt: { ...jwt, required: 'never' } } },
        },
      }
    },
    attack: async (scene) => {
      const found: string[] = []
      for (const mount of ['/writes', '/never']) {
        for (const value of forgedSpellings) {
          const { status } = await ask(scene.origin, `${mount}/x`, { headers: { Authorization: value } })
          if (status !== 401) found.push(`${mount}: ${status} for ${value.replace(forgedToken, 'TOKEN')}`)
        }
        const basic = await ask(scene.origin, `${mount}/x`, { headers: { Authorization: 'Basic eDp5IHo=' } })
        if (!basic.text.includes('eDp5IHo=')) found.push(`${mount}: Basic does not reach the upstream`)
      }
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
  row<Record<string, number>>({
    name: 'failing-leader',
    description:
      'A request that makes the upstream answer 500 does not fail those that wait for the same response.',
    settings: scripted(failingLeader),
    attack: async (scene) => {
      const statuses: Record<string, number> = {}
      for (let turn = 0; turn < 3; turn += 1) {
        const path = `/echo/led-${turn}`
        const leader = ask(scene.origin, path, { headers: { 'X-Break': '1' } })
        await new Promise((resolve) => setTimeout(resolve, 80))
        const waiters = await Promise.all(
          Array.from({ length: 20 }, () => ask(scene.origin, path, { from: '127.0.0.4' })),
        )
        await leader
        for (const { status } of waiters) statuses[status] = (statuses[status] ?? 0) + 1
      }
      return statuses
    },
    verdict: ({ found }) =>
      Object.entries(found).flatMap(([status, count]) =>
        status === '200' ? [] : faultsOf([`${count} of 60 requests that waited were answered ${status}`]),
      ),
  }),
]
