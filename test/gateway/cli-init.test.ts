import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import type { CliPorts } from '../../src/cli/cli-ports.ts'
import { writeFileSet } from '../../src/cli/commands/init-files.ts'
import type { Config } from '../../src/config/config.ts'
import { checkConfig, configWarnings } from '../../src/gateway/load-config.ts'
import { allUpstreamIssues, siteFacts, upstreamFreshness } from '../../src/gateway/upstream-issues.ts'
import { startTrial } from '../../src/start-trial.ts'
import { runCommand } from '../support/command.ts'
import { startTestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

let folder: string
let initFile: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-init-'))
  initFile = join(folder, 'trellis.yaml')
})

const unreachable = { root: undefined, fault: 'The upstream does not respond.', hasCompanion: false }

const init = async (
  operands: readonly string[],
  force = false,
  siteFacts: CliPorts['siteFacts'] = async () => unreachable,
  upstreamIssues: CliPorts['upstreamIssues'] = async () => [],
  env: CliPorts['env'] = {},
  upstreamFreshness: CliPorts['upstreamFreshness'] = async () => 'unknown',
) => {
  const tried: CliPorts['startTrial'] = (config) => startTrial(config, 'test')
  const ports = { initFile, env, upstreamIssues, upstreamFreshness, siteFacts, startTrial: tried }
  return runCommand(['init', ...operands, ...(force ? ['--force'] : [])], ports)
}

const written = async (): Promise<Config> => {
  const result = await checkConfig(await readFile(initFile, 'utf8'), {})
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  expect(configWarnings(result.config)).toEqual([])
  return result.config
}

/** Where requests of a service go. */
const wayOf = ({ services }: Config) =>
  services.map(({ name, mount, upstream: { targets, basePath, host } }) =>
    [name, mount, [targets].flat().join(), basePath, host].join(' '),
  )

describe('trellis init writes a valid configuration without warnings', () => {
  test.each([
    ['without operands', [], ['api / http://127.0.0.1:3000 / target']],
    ['open', ['open'], ['api / http://127.0.0.1:3000 / target']],
    ['open with a URL', ['open', 'https://api.example:8443'], ['api / https://api.example:8443 / target']],
    ['open with a path', ['open', 'https://api.example/v1/'], ['api / https://api.example /v1 target']],
    [
      'wordpress',
      ['wordpress'],
      ['wordpress /wp-json http://127.0.0.1:8000 /wp-json target', 'pages / http://127.0.0.1:8000 / target'],
    ],
    [
      'wordpress known by its name',
      ['wordpress', 'https://blog.example'],
      [
        'wordpress /wp-json https://blog.example /wp-json preserve',
        'pages / https://blog.example / preserve',
      ],
    ],
    [
      'wordpress in a folder',
      ['wordpress', 'http://[::1]:8000/blog'],
      [
        'wordpress /blog/wp-json http://[::1]:8000 /blog/wp-json target',
        'pages / http://[::1]:8000 / target',
      ],
    ],
  ])('%s', async (_description, operands, ways) => {
    const { end, stdout } = await init(operands)
    expect(end).toBe(0)
    expect(stdout).toContain(`${initFile} written. Next:\n`)
    expect(stdout).toContain('trellis check')
    expect(wayOf(await written())).toEqual(ways)
  })

  test.each(['https://www.example', 'https://www.example/blog'])(
    'a site known by its name has that name in its links, and its folder in the mount: %s',
    async (url) => {
      await init(['wordpress', url])
      const { publicUrl, services } = await written()
      expect(publicUrl + services[0]?.mount).toBe(`${url}/wp-json`)
    },
  )

  test.each([['wordpress'], ['open']])('with a health check of every server: %s', async (kind) => {
    await init([kind, 'http://127.0.0.1:8000'])
    const { services } = await written()
    expect(services.filter(({ upstream: { health } }) => health.path === '')).toEqual([])
  })

  test.each([
    ['at the root of its host', 'https://www.example', ''],
    ['in a folder', 'https://www.example/blog', '/blog'],
  ])(
    'of a WordPress %s with limits for logins, cron and XML-RPC, and comparisons',
    async (_where, url, prefix) => {
      await init(['wordpress', url])
      const config = await written()
      expect(config.rateLimits.map(({ name, max }) => [name, max])).toEqual([
        ['logins', 20],
        ['cron', 4],
        ['xmlrpc', 60],
      ])
      const text = await readFile(initFile, 'utf8')
      for (const path of ['POST PREFIX/wp-login.php', '* PREFIX/wp-cron.php', 'POST PREFIX/xmlrpc.php'])
        expect(text).toContain(`match: "${path.replace('PREFIX', prefix)}"`)
      expect(text).toContain('verify: { rate: 1/s }')
    },
  )

  test('every line that is not obvious has a comment', async () => {
    await init(['wordpress'])
    const lines = (await readFile(initFile, 'utf8')).split('\n').filter((line) => line.trim() !== '')
    expect(lines.filter((line) => line.includes('# ')).length).toBeGreaterThan(lines.length / 2)
  })
})

describe('trellis init wordpress asks the site where its REST API is', () => {
  const index = (root: string, more: object = {}) =>
    JSON.stringify({
      name: 'Site',
      home: new URL(root).origin,
      namespaces: ['wp/v2'],
      ...more,
      routes: { '/': { namespace: '', methods: ['GET'], endpoints: [], _links: { self: [{ href: root }] } } },
    })
  const headers = { 'Content-Type': 'application/json' }
  let site: Origin
  const responses =
    (root: string, hasCompanion = false): Script =>
    (request, wire) => {
      if (hasCompanion && request.target.includes('trellis-changes')) return wire.respond({ status: 401 })
      const isIndex = [`${root}/`, '/?rest_route=/'].includes(request.target)
      return isIndex
        ? wire.respond({ headers, content: index(`${site.origin}${root}/`) })
        : wire.respond({ status: 404, content: 'nothing' })
    }
  beforeEach(async () => {
    site = await startOrigin()
  })
  afterEach(() => site.close())

  test.each([
    ['', '/index.php/wp-json'],
    ['', '/wp-json'],
    ['/wp-json', '/wp-json'],
    ['/wp-json/', '/index.php/wp-json'],
    ['/blog/index.php/wp-json', '/blog/wp-json'],
    ['', '/api'],
  ])('given %j it finds %s', async (path, root) => {
    site.script = responses(root)
    const { end, stdout } = await init(['wordpress', site.origin + path], false, siteFacts)
    expect([end, stdout]).toEqual([0, expect.stringContaining(`announces its REST API at ${root}.`)])
    expect(stdout).toContain('The companion is not installed')
    expect(wayOf(await written())[0]).toBe(`wordpress ${root} ${site.origin} ${root} target`)
  })

  test.each([
    ['/wp-json', '/graphql'],
    ['/index.php/wp-json', '/graphql'],
    ['/blog/index.php/wp-json', '/blog/index.php/graphql'],
  ])('beside %s, and WPGraphQL at %s', async (root, path) => {
    site.script = (request, wire, count) =>
      request.target.startsWith(`${path}?`)
        ? wire.respond({ headers, content: '{"data":{"__typename":"RootQuery"}}' })
        : responses(root)(request, wire, count)
    const { stdout } = await init(['wordpress', site.origin + root], false, siteFacts)
    expect(stdout).toContain(`WPGraphQL answers at ${path}.`)
    expect(wayOf(await written())[1]).toBe(`graphql ${path} ${site.origin} ${path} target`)
  })

  test('and whether the companion is installed', async () => {
    site.script = responses('/wp-json', true)
    const { stdout } = await init(['wordpress', site.origin], false, siteFacts)
    expect(stdout).toContain('The companion is installed: set changes.token')
  })

  test('and what it runs: plugins are named, their cookies and reads suggested as comments', async () => {
    const namespaces = ['oembed/1.0', 'wp/v2', 'wc/v3', 'wc/store', 'yoast/v1', 'acme/v1']
    site.script = (request, wire) =>
      request.target === '/wp-json/'
        ? wire.respond({ headers, content: index(`${site.origin}/wp-json/`, { namespaces }) })
        : wire.respond({ status: 404, content: 'nothing' })
    const { stdout } = await init(['wordpress', site.origin], false, siteFacts)
    expect(stdout).toContain('Plugins in its index: WooCommerce, Yoast SEO, acme.\n')
    const text = await readFile(initFile, 'utf8')
    const inForce = text.replace('# harmlessCookies', 'harmlessCookies').replaceAll('# - {', '- {')
    expect(inForce).not.toBe(text)
    await writeFile(initFile, inForce)
    const [wordpress] = (await written()).services
    expect(wordpress?.cache).toMatchObject({ harmlessCookies: ['woocommerce_recently_viewed'] })
    expect(JSON.stringify(wordpress?.cache)).toContain('/wc/store/v1/products/**')
  })

  test('and its own address: where that is another one, WordPress gets its Host', async () => {
    site.script = (request, wire) =>
      request.target === '/wp-json/'
        ? wire.respond({
            headers,
            content: index(`${site.origin}/wp-json/`, { home: 'https://blog.example/x' }),
          })
        : wire.respond({ status: 404, content: 'nothing' })
    await init(['wordpress', site.origin], false, siteFacts)
    const config = await written()
    expect(config.publicUrl).toBe('https://blog.example')
    expect(wayOf(config)[0]).toBe(`wordpress /wp-json ${site.origin} /wp-json preserve`)
  })

  test('ends with a verified hit', async () => {
    site.script = (request, wire) => {
      if (request.target === '/wp-json/')
        return wire.respond({ headers, content: index(`${site.origin}/wp-json/`) })
      return request.target.startsWith('/wp-json/wp/v2/posts')
        ? wire.respond({ headers: { ...headers, Allow: 'GET' }, content: '[]' })
        : wire.respond({ status: 404, content: 'nothing' })
    }
    const { stdout } = await init(['wordpress', site.origin], false, siteFacts)
    expect(stdout).toMatch(/\nGET \/wp-json\/wp\/v2\/posts: miss, then hit\. \d+ s\.\n$/)
  })

  test('a hit that did not come is said, with what the cache says of it', async () => {
    site.script = (request, wire) =>
      request.target === '/wp-json/'
        ? wire.respond({ headers, content: index(`${site.origin}/wp-json/`) })
        : wire.respond({ status: 401, headers, content: '{}' })
    const { end, stdout } = await init(['wordpress', site.origin], false, siteFacts)
    expect(stdout).toMatch(
      /\nGET \/wp-json\/wp\/v2\/posts: 401, not stored \(trellis; fwd=.*\); trellis explain GET \/wp-json\/wp\/v2\/posts says why\.\n$/,
    )
    expect(end).toBe(0)
  })

  test.each([
    ['no WordPress answers', '/nothing', 'The upstream is not a WordPress'],
    ['it has plain permalinks', '/index.php', 'WordPress uses plain permalinks'],
  ])('and says why it writes the usual path where %s', async (_what, root, fault) => {
    site.script =
      root === '/nothing'
        ? (_, wire) => wire.respond({ status: 404 })
        : (request, wire) => {
            const isIndex = request.target === '/?rest_route=/'
            wire.respond(
              isIndex
                ? { headers, content: index(`${site.origin}/index.php?rest_route=/`) }
                : { status: 404, content: 'nothing' },
            )
          }
    const { end, stdout } = await init(['wordpress', site.origin], false, siteFacts)
    expect([end, stdout]).toEqual([0, expect.stringContaining(`/wp-json is assumed. `)])
    expect(stdout).toContain(fault)
    expect(wayOf(await written())[0]).toContain('wordpress /wp-json ')
  })

  test('a site that does not answer is no fault', async () => {
    const { end, stdout } = await init(['wordpress', 'http://127.0.0.1:1'], false, siteFacts)
    expect([end, stdout]).toEqual([0, expect.stringContaining('does not respond (ECONNREFUSED)')])
  })
})

describe('trellis init says what it found', () => {
  const asked: CliPorts['upstreamIssues'] = (config) => allUpstreamIssues(config)
  const found = async (operands: readonly string[]) =>
    (await init(operands, false, siteFacts, asked)).stdout.split('\n')

  test('of an API: it answers, or why not', async () => {
    const api = await startOrigin()
    onTestFinished(() => api.close())
    expect((await found(['open', api.origin]))[0]).toBe(`${api.origin} answers.`)
    initFile = join(folder, 'second.yaml')
    expect((await found(['open', 'http://127.0.0.1:1']))[0]).toContain('ECONNREFUSED')
  })

  test('of a document: its operations, and whether its server answers', async () => {
    const api = await startOrigin()
    onTestFinished(() => api.close())
    const paths = { '/pets': { get: { responses: { 200: { description: 'pets' } } } } }
    const document = {
      openapi: '3.1.0',
      info: { title: 'Pets', version: '1' },
      servers: [{ url: `${api.origin}/v1` }],
      paths,
    }
    await writeFile(join(folder, 'pets.json'), JSON.stringify(document))
    const lines = await found(['openapi', join(folder, 'pets.json')])
    expect(lines.slice(0, 2)).toEqual([
      'The document "Pets" describes 1 operation, 1 of them with GET.',
      `${api.origin} answers.`,
    ])
    expect(wayOf(await written())).toEqual([`pets /v1 ${api.origin} /v1 target`])
  })
})

test('the first line leads an editor to the schema of the package', async () => {
  await init(['open'])
  const [line = ''] = (await readFile(initFile, 'utf8')).split('\n')
  const [, schema = ''] = /^# yaml-language-server: \$schema=(\S+)$/.exec(line) ?? []
  expect(JSON.parse(await readFile(resolve(folder, schema), 'utf8'))).toHaveProperty('properties.services')
})

test('started by npx, the next steps begin with npx', async () => {
  const { stdout } = await init(['open'], false, undefined, undefined, {
    npm_execpath: '/usr/bin/npm-cli.js',
  })
  expect(stdout).toContain('  npx trellis check --upstreams\n  npx trellis start\n')
})

describe('trellis init writes nothing', () => {
  test('over a file that is there already, except with --force', async () => {
    await writeFile(initFile, 'mine: true\n')
    expect(await init(['open'])).toEqual({
      end: 8,
      stdout: '',
      stderr: `trellis: ${initFile} exists already; --force replaces it\n`,
    })
    expect(await readFile(initFile, 'utf8')).toBe('mine: true\n')
    for (const kind of [['open'], []]) expect((await init(kind, true)).end).toBe(0)
    await written()
  })

  test('in a folder that does not exist', async () => {
    initFile = join(folder, 'missing/trellis.yaml')
    const { end, stderr } = await init(['open'])
    expect(end).toBe(8)
    expect(stderr).toBe(`trellis: ${initFile} cannot be written (ENOENT)\n`)
  })

  test.each([
    ['open', 'ftp://a'],
    ['open', 'http://a/?x=1'],
    ['wordpress', 'blog.example'],
    ['open', 'https://a/b%20c'],
    ['open', 'http://a//b'],
  ])('for an upstream that is no http URL with a plain path: %s %s', async (kind, url) => {
    const { end, stderr } = await init([kind, url])
    expect(end).toBe(2)
    expect(stderr).toContain('Expected the http or https URL of the upstream')
    expect(stderr).toContain(`Try: trellis init ${kind} --help`)
  })
})

describe('trellis init open asks the upstream for how long its responses are fresh', () => {
  /** The file that is written for an upstream whose front page has these headers, and a gateway with it. */
  const started = async (headers: Readonly<Record<string, string>>) => {
    const origin = await startOrigin((_request, wire) => wire.respond({ headers, content: '<p>front</p>' }))
    onTestFinished(() => origin.close())
    const { stdout } = await init(['open', origin.origin], false, undefined, undefined, {}, upstreamFreshness)
    const config = parse(await readFile(initFile, 'utf8'))
    const gateway = await startTestGateway({ services: config.services })
    onTestFinished(() => gateway.close())
    const statusOf = async (headers: Readonly<Record<string, string>> = {}) =>
      (await fetch(gateway.publicAddress, { headers })).headers.get('cache-status')
    return { stdout, statusOf }
  }

  test.each([
    ['does not say', {}],
    ['says', { 'Cache-Control': 'max-age=60' }],
  ])('where it %s, the steps that are suggested lead to a hit', async (_description, headers) => {
    const { stdout, statusOf } = await started(headers)
    expect(stdout).toContain('GET /: miss, then hit. ')
    await statusOf()
    expect(await statusOf()).toMatch(/^trellis; hit/)
  })

  test('where it does not say, what clients with a cookie get is not stored', async () => {
    const { statusOf } = await started({})
    expect(await statusOf({ cookie: 'sid=1' })).toBe('trellis; fwd=bypass; detail=cookie')
  })

  test.each([
    ['sets a cookie', { 'Set-Cookie': 'a=b' }],
    ['forbids it', { 'Cache-Control': 'no-store' }],
  ])('where its front page %s, no rule is written', async (_description, headers) => {
    const { stdout, statusOf } = await started(headers)
    expect(stdout).toContain('it is not stored; other paths may be')
    await statusOf()
    expect(await statusOf()).toMatch(/fwd=uri-miss/)
  })
})

test('init systemd warns of a folder that a restart empties', async () => {
  const root = await mkdtemp('/tmp/trellis-root-')
  onTestFinished(() => rm(root, { recursive: true }))
  await cp('deploy/systemd/trellis.service', join(root, 'deploy/systemd/trellis.service'))
  let stdout = ''
  const output = { write: (text: string) => (stdout += text) }
  const ports = { packageFolder: pathToFileURL(`${root}/`), stdout: output, stderr: output }
  expect(await writeFileSet(ports, 'systemd', relative('.', join(folder, 'unit')), false)).toBe('ok')
  expect(stdout).toContain(`the unit runs Trellis from ${root}, which a restart of the machine empties`)
  expect(stdout).toContain(`Files written to ${join(folder, 'unit')}. Next:`)
})
