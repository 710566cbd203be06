import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { oneOf, type Random, randomFrom } from '../../support/random.ts'
import { exchangeBytes } from '../../support/raw-client.ts'
import { type AttackRow, faultsOf, row, type Tree } from '../attack-row.ts'
import { originOf, type Scene, scriptedOrigin } from '../scene.ts'
import { openService } from '../services.ts'

// Other spellings of a path, and of a name, than the one that a limit, a rule or a document has.

type Spelling = (random: Random) => string

const each = (text: string, forms: (letter: string) => readonly string[]): Spelling => {
  return (random) => [...text].map((letter) => oneOf(random, forms(letter))).join('')
}
const coded = (letter: string): string => `%${letter.charCodeAt(0).toString(16)}`
const inAnyCase = (text: string): Spelling =>
  each(text, (letter) => [letter, letter, letter.toUpperCase(), coded(letter), coded(letter.toUpperCase())])
const inItsCase = (text: string): Spelling => each(text, (letter) => [letter, letter, coded(letter)])

const slashes = [
  '/',
  '/',
  '//',
  '%2f',
  '/%2F',
  ';x/',
  ';a=b;c/',
  '%3b/',
  './',
  '%20/',
  '/;a/',
  '/./',
  '/a/../',
]
const ends = ['', '', '/', '//', '/a/b', ';', ';a/b', '%20', '.', '.%20', '%2Fx', '/x.php', '?a', '%3Fa']
const spelled =
  (steps: readonly Spelling[], between: readonly string[], last: readonly string[]): Spelling =>
  (random) =>
    `/${steps.map((step, at) => (at === 0 ? '' : oneOf(random, between)) + step(random)).join('')}${oneOf(random, last)}`

const many = 150
const seed = 20_261_127
/** Different ones, the same in each run. */
const spellingsOf = (spelling: Spelling): readonly string[] => {
  const random = randomFrom(seed)
  return [...new Set(Array.from({ length: many }, () => spelling(random)))]
}

/** The head and content of the response, over a socket: no library resolves the path first. */
const send = (scene: Scene, method: string, path: string): Promise<string> =>
  exchangeBytes(
    scene.origin,
    `${method} ${path} HTTP/1.1\r\nHost: x\r\n${method === 'POST' ? 'Content-Length: 0\r\n' : ''}Connection: close\r\n\r\n`,
  )
const statusOf = (response: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(response)?.[1] ?? 0)

const json = { 'Content-Type': 'application/json' }

type Services = (target: { readonly targets: readonly string[] }) => Tree
const withServices =
  (services: Services, more: Tree = {}): AttackRow['settings'] =>
  async (scene) => {
    const origin = await scriptedOrigin(scene, (_, wire) =>
      wire.respond({ headers: json, content: '{"id":1}' }),
    )
    return {
      ...more,
      services: { open: openService(scene.upstream), ...services({ targets: [origin.origin] }) },
    }
  }
const siteAt = (mount: string, upstream: Tree, more: Tree = {}): Tree => ({
  contract: 'site',
  mount,
  discovery: { source: 'static', identity: { name: 'Spelled' } },
  upstream: { ...upstream, basePath: '/index.php/wp-json' },
  ...more,
})

type Row = Omit<AttackRow<readonly string[]>, 'verdict'>
const texts = (more: Row): AttackRow =>
  row<readonly string[]>({ ...more, verdict: ({ found }) => faultsOf(found.slice(0, 5)) })

const limits = [
  { name: 'login', service: 'blog', match: 'POST /wp-login.php', max: 1, window: '1h' },
  { name: 'comments', service: 'wp', match: 'POST /site/v2/comments', max: 1, window: '1h' },
  { name: 'token', service: 'wp', match: 'POST /jwt-auth/v1/token', max: 1, window: '1h' },
]

const limited: readonly (readonly [plain: string, spelling: Spelling])[] = [
  ['/blog/wp-login.php', spelled([inItsCase('blog'), inAnyCase('wp-login.php')], slashes, ends)],
  [
    '/wp/site/v2/comments',
    spelled(
      [inItsCase('wp'), inAnyCase('site'), inAnyCase('v2'), inAnyCase('comments')],
      ['/', '/', '//'],
      ['', '/'],
    ),
  ],
  [
    '/wp/jwt-auth/v1/token',
    spelled(
      [inItsCase('wp'), inAnyCase('jwt-auth'), inAnyCase('v1'), inAnyCase('token')],
      ['/', '/', '//'],
      ['', '/'],
    ),
  ],
]

const stored: readonly Spelling[] = [
  spelled([inItsCase('ruled'), inAnyCase('account'), inAnyCase('me')], slashes, ends),
  spelled(
    [inItsCase('wp'), inAnyCase('site'), inAnyCase('v2'), inAnyCase('users'), () => '5'],
    ['/', '/', '//'],
    ['', '/'],
  ),
]
const rules = (...strict: readonly string[]): Tree => ({
  rules: [...strict.map((match) => ({ match, ttl: '0s' })), { match: 'GET /**', ttl: '60s' }],
})

/** As the most forgiving servers read a path: coded and other separators, parameters, spaces and dots at the end of a segment. */
const resolved = (target: string): string => {
  const path = target
    .split('?')[0]
    ?.replace(/%2f|%5c|\\/gi, '/')
    .replace(/%2e/gi, '.')
    .replace(/%3b/gi, ';')
    .replace(/%20|%09|%00/g, '')
  const kept: string[] = []
  for (const segment of (path ?? '').split('/').map((one) => one.replace(/;.*/, ''))) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(segment)
  }
  return `/${kept.join('/')}`
}

const dots: Spelling = (random) => {
  const dot = (): string => oneOf(random, ['.', '.', '%2e', '%2E'])
  const after = oneOf(random, ['', ';', ';x', '%3b', '%3Bx=y', '%20', '%09', '%00', ';a;b'])
  return dot() + dot() + after
}
const between = ['/', '/', '%2f', '%2F', '%5c', '\\', '//', '/./', '/.;/']
const leaving =
  (mount: string): Spelling =>
  (random) => {
    const steps = Array.from({ length: 1 + Math.floor(random() * 3) }, () =>
      oneOf(random, [dots, dots, () => 'a'])(random),
    )
    return `${mount}/${[...steps, dots(random), 'admin'].reduce((text, step) => text + oneOf(random, between) + step)}`
  }

const file = (name: string) => ({
  get: {
    parameters: [{ name, in: 'path', required: true, schema: { type: 'string' } }],
    responses: { 200: { description: 'a file' } },
  },
})
const integer = { type: 'integer', maximum: 100 }
const document = {
  openapi: '3.1.0',
  info: { title: 'files', version: '1' },
  paths: {
    '/files/{name}': file('name'),
    '/pets': {
      get: {
        parameters: [
          { name: 'page_size', in: 'query', schema: integer },
          { name: 'i', in: 'query', schema: integer },
        ],
        responses: { 200: { description: 'pets' } },
      },
      post: {
        requestBody: {
          content: {
            'application/x-www-form-urlencoded': {
              schema: { type: 'object', properties: { page_size: integer, i: integer } },
            },
          },
        },
        responses: { 200: { description: 'a pet' } },
      },
    },
  },
}

const withDocument: AttackRow['settings'] = async (scene) => {
  const folder = await mkdtemp(join(tmpdir(), 'attacked-'))
  scene.resources.add(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'api.json'), JSON.stringify(document))
  return withServices((upstream) => ({
    api: {
      contract: 'openapi',
      mount: '/api',
      document: join(folder, 'api.json'),
      upstream: { ...upstream, basePath: '/v1/internal' },
    },
    shop: { contract: 'open', mount: '/shop', upstream: { ...upstream, basePath: '/shop' } },
    wp: siteAt('/wp', upstream),
  }))(scene)
}
const bases = ['/v1/internal', '/shop', '/index.php/wp-json']

/** What PHP makes of a name: a bracket that is not closed is one more character that it does not like. */
const inPhp = (name: string): string => {
  const text = name.replace(/\0.*/s, '').trimStart()
  const at = text.indexOf('[')
  const first = (at < 0 ? text : text.slice(0, at)).replace(/[ .]/g, '_')
  return at < 0 || text.includes(']', at) ? first : `${first}_${text.slice(at + 1)}`
}
/** What Rack and its kind make of it. */
const inRack = (name: string): string => /^[[\]]*([^[\]]+)/.exec(name)?.[1] ?? ''

const readings = (name: string): readonly string[] => {
  const text = decodeURIComponent(name.replaceAll('+', ' '))
  return [text, inPhp(text), inRack(text)].map((one) => one.toLowerCase())
}

const spelledName: Spelling = (random) => {
  const name = oneOf(random, ['page_size', 'i'])
  const inside = name.replace('_', oneOf(random, ['_', '.', '+', '%20', '[', '%5B', '_']))
  const letters = each(inside, (letter) =>
    /[a-z]/.test(letter) ? [letter, letter, letter.toUpperCase(), coded(letter)] : [letter],
  )
  return (
    oneOf(random, ['', '', '', '+', '%20', '[']) +
    letters(random) +
    oneOf(random, ['', '', '[]', '%5B%5D', '[0]', '[a][b]', '[', '%00', '%00x', ']'])
  )
}

export const spellingRows: readonly AttackRow[] = [
  texts({
    name: 'spellings-of-limits',
    description: 'Random spellings of a limited path: each is counted, or refused.',
    settings: withServices(
      (upstream) => ({
        blog: { contract: 'open', mount: '/blog', upstream: { ...upstream, basePath: '/blog' } },
        wp: siteAt('/wp', upstream),
      }),
      { rateLimits: limits },
    ),
    attack: async (scene) => {
      const found: string[] = []
      for (const [plain, spelling] of limited) {
        await send(scene, 'POST', plain)
        for (const path of spellingsOf(spelling)) {
          const status = statusOf(await send(scene, 'POST', path))
          if (status < 400 || status >= 500) found.push(`POST ${path}: ${status}`)
        }
      }
      return found
    },
  }),
  texts({
    name: 'spellings-of-access',
    description: 'Random spellings of a path below a service with access rules reach no other service.',
    settings: withServices((upstream) => ({
      app: { contract: 'open', mount: '/app', upstream: { ...upstream, basePath: '/app' } },
      admin: {
        contract: 'open',
        mount: '/app/admin',
        upstream: { ...upstream, basePath: '/app/admin' },
        access: { allow: ['192.0.2.1'] },
      },
    })),
    attack: async (scene) => {
      const found: string[] = []
      const spelling = spelled([inItsCase('app'), inItsCase('admin'), () => 'users'], slashes, ends)
      for (const path of spellingsOf(spelling)) {
        const status = statusOf(await send(scene, 'GET', path))
        const seen = originOf(scene).received.at(-1)?.target ?? ''
        if (status < 400 && resolved(seen).startsWith('/app/admin'))
          found.push(`GET ${path}: ${status}, sent as ${seen}`)
      }
      return found
    },
  }),
  texts({
    name: 'spellings-of-rules',
    description: 'Random spellings of a path that a rule keeps out of the cache are not stored.',
    settings: withServices((upstream) => ({
      ruled: {
        contract: 'open',
        mount: '/ruled',
        upstream,
        cache: rules('GET /account/**'),
      },
      wp: siteAt('/wp', upstream, { cache: rules('GET /site/v2/users/**') }),
    })),
    attack: async (scene) => {
      const found: string[] = []
      for (const path of stored.flatMap(spellingsOf)) {
        await send(scene, 'GET', path)
        const response = await send(scene, 'GET', path)
        if (/^cache-status: .*; hit/im.test(response)) found.push(`GET ${path} is a hit`)
      }
      return found
    },
  }),
  texts({
    name: 'dot-segments',
    description: 'Random dot segments, with parameters and coded, leave no mount, base path or document.',
    settings: withDocument,
    attack: async (scene) => {
      const found: string[] = []
      const { received } = originOf(scene)
      for (const mount of ['/shop', '/api', '/api/files', '/wp', '/wp/site/v2']) {
        for (const path of spellingsOf(leaving(mount))) {
          received.length = 0
          const response = await send(scene, 'GET', path)
          if (statusOf(response) === 0) found.push(`GET ${path}: no response`)
          const [seen] = received
          if (seen === undefined) continue
          if (!bases.some((base) => resolved(seen.target).startsWith(base)))
            found.push(`GET ${path} is sent as ${seen.target}`)
        }
      }
      return found
    },
  }),
  texts({
    name: 'coded-twice',
    description: 'What is coded twice is decoded once at most.',
    settings: withDocument,
    attack: async (scene) => {
      const found: string[] = []
      const { received } = originOf(scene)
      for (const path of [
        '%252e%252e/admin',
        '%252e%252e%252fadmin',
        'a%252fb',
        '%2525',
        '%252e',
        '..%252f',
        'x%253bx',
        '%25%32%65%25%32%65/admin',
      ]) {
        for (const mount of ['/shop/', '/api/files/', '/wp/acme/v1/']) {
          received.length = 0
          const status = statusOf(await send(scene, 'GET', mount + path))
          const target = received[0]?.target
          if (target === undefined ? status < 400 : !/%25/.test(target))
            found.push(`GET ${mount}${path}: ${status}, sent as ${target}`)
        }
      }
      return found
    },
  }),
  texts({
    name: 'names-read-alike',
    description:
      'An undeclared name that a server may read as a declared one brings no value past its schema.',
    settings: withDocument,
    attack: async (scene) => {
      const found: string[] = []
      const { received } = originOf(scene)
      const passed = (text: string): boolean =>
        text.split('&').some((pair) => {
          const [name = '', value] = pair.split('=')
          return readings(name).some((one) => one === 'page_size' || one === 'i') && Number(value) > 100
        })
      for (const name of spellingsOf(spelledName)) {
        received.length = 0
        await send(scene, 'GET', `/api/pets?${name}=500`)
        await exchangeBytes(
          scene.origin,
          `POST /api/pets HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${name.length + 4}\r\nConnection: close\r\n\r\n${name}=500`,
        )
        for (const { target, content } of received) {
          const text = content.length === 0 ? (target.split('?')[1] ?? '') : content.toString('latin1')
          if (passed(text)) found.push(`${name} arrives as ${text}`)
        }
      }
      return found
    },
  }),
]
