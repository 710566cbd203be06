import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { upstreamIssues } from '../../src/gateway/upstream-issues.ts'
import { testAtLength } from '../support/at-length.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { packInto, secondsToFirstHit } from '../support/first-hit.ts'
import { startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { blocksOf, comparable, printedBy, shownCommands } from '../support/shown-commands.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const document = await readFile(`${root}docs/wordpress.md`, 'utf8')
const example = `${root}config/wordpress.example.yaml`

const shown = shownCommands(document)

let wordpress: WordPress
let trellis: RunningProcess
let main: string
/** The port that is written in the document, and the one that stands for it here. */
const ports = new Map<string, number>()
let publicUrl: string
/** Where the reader works: `trellis init` writes there. */
let folder: string
/** What `trellis init` has printed. */
let initial: string

/** The WordPress of the tests has permalinks that go through index.php. */
const here = (text: string): string =>
  text
    .replaceAll('/wp-json', '/index.php/wp-json')
    .replaceAll('npx trellis', `${process.execPath} ${main}`)
    .replaceAll(/127\.0\.0\.1:(\d+)/g, (_, port: string) => `127.0.0.1:${ports.get(port)}`)

const settings = () => ({
  TRELLIS_PORT: String(ports.get('8080')),
  TRELLIS_ADMIN_PORT: String(ports.get('9090')),
  TRELLIS_PUBLIC_URL: publicUrl,
  TRELLIS_ADMIN_TOKEN: 'a-token-of-this-test-alone',
  WORDPRESS_ORIGIN: wordpress.origin,
  WORDPRESS_REST: '/index.php/wp-json',
})

const printed = (command: string): Promise<string> => {
  const { username, password } = wordpress.credentials.admin
  return printedBy(here(command), {
    cwd: folder,
    env: { ...settings(), WP_USER: username, WP_PASSWORD: password },
  })
}

/** A logged-in browser, which is only a cookie jar here. */
const logIn = async (): Promise<(path: string, form?: Record<string, string>) => Promise<Response>> => {
  const jar = new Map<string, string>([['wordpress_test_cookie', 'WP%20Cookie%20check']])
  const visit = async (path: string, form?: Record<string, string>): Promise<Response> => {
    const response = await fetch(`${publicUrl}${path}`, {
      redirect: 'manual',
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
    return response
  }
  // As test/real/wordpress/seed.php has made it: the credentials of the site are application passwords, with which there is no login.
  const response = await visit('/wp-login.php', { log: 'admin', pwd: 'admin-password', testcookie: '1' })
  expect(response.status, await response.text()).toBe(302)
  expect(response.headers.get('location')).toContain(`${publicUrl}/wp-admin/`)
  return visit
}

const configWith = async (change: (text: string) => string, env: Record<string, string>) => {
  const checked = await checkConfig(change(await readFile(example, 'utf8')), { ...settings(), ...env })
  if (checked.kind === 'faults') throw new Error(JSON.stringify(checked.faults))
  return checked.config
}

describeWith('php', 'docs/wordpress.md goes as it is written', () => {
  beforeAll(async () => {
    for (const port of ['8080', '9090']) ports.set(port, await freePort())
    publicUrl = `http://127.0.0.1:${ports.get('8080')}`
    main = await builtGateway()
    wordpress = await startWordPress({ publicUrl })
    ports.set('8000', Number(new URL(wordpress.origin).port))
    folder = await mkdtemp(join(tmpdir(), 'trellis-quick-start-'))
    const [init = ''] = blocksOf(document, 'sh').filter((block) => block.includes('trellis init'))
    initial = await printed(init.trimEnd())
    trellis = startProcess(process.execPath, [main, 'start'], { env: settings(), cwd: folder })
    await untilReady(trellis, async () => {
      const response = await fetch(here('http://127.0.0.1:9090/readyz'))
      if (!response.ok) throw new Error(`/readyz: ${response.status}`)
      await response.arrayBuffer()
    })
  }, 300_000)
  afterAll(async () => {
    await trellis?.stop(0)
    await wordpress?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  test('it has commands', () => {
    expect(shown).toHaveLength(8)
  })

  test('init asks WordPress, and ends with a verified hit', () => {
    const [block = ''] = blocksOf(document, 'text')
    const withoutTime = (text: string): string =>
      comparable(text.replaceAll('npx trellis', 'trellis').replaceAll(/\d+ s\./g, 'N s.'))
    expect(withoutTime(initial)).toBe(withoutTime(block.replaceAll('/wp-json', '/index.php/wp-json')))
  })

  test.each(shown)('$command', async ({ command, output }) => {
    // A response may still be on its way.
    const atRest = (text: string): string => comparable(text).replace(/\d+ in flight/, '0 in flight')
    expect(atRest(await printed(command))).toBe(atRest(here(output)))
  })

  testAtLength('a newcomer with the package needs three commands to the first hit', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-newcomer-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const tarball = await packInto(folder)
    const commands = [['init', 'wordpress', wordpress.origin], ['start']]
    const path = '/index.php/wp-json/wp/v2/posts?per_page=1'
    const seconds = await secondsToFirstHit(folder, tarball, commands, path)
    process.stdout.write(`a WordPress: ${seconds.toFixed(1)} s to the first hit\n`)
    expect(seconds).toBeLessThan(60)
  })

  test('the start has warned of nothing', () => {
    const warnings = trellis
      .output()
      .split('\n')
      .filter((line) => line.includes('upstream-finding'))
    // A busy machine may take longer than the start waits.
    expect(warnings.filter((line) => !line.includes('no response in time'))).toEqual([])
  })

  describe('config/wordpress.example.yaml', () => {
    test('passes the front page on, which names the interface by the address of the gateway', async () => {
      const response = await fetch(`${publicUrl}/`, { redirect: 'manual' })
      await response.arrayBuffer()
      expect(response.status).toBe(200)
      expect(response.headers.get('link')).toContain(
        `<${publicUrl}/index.php/wp-json/>; rel="https://api.w.org/"`,
      )
    })

    test('passes logins to wp-admin, and the next read shows a change saved there', async () => {
      const title = async (): Promise<unknown> => {
        const response = await fetch(`${publicUrl}/index.php/wp-json/wp/v2/posts/1?_fields=title`)
        return [
          ((await response.json()) as { title: { rendered: string } }).title.rendered,
          response.headers.get('cache-status'),
        ]
      }
      await title()
      expect(await title()).toEqual([expect.any(String), expect.stringContaining('hit')])
      const visit = await logIn()
      const screen = await (await visit('/wp-admin/edit.php')).text()
      const nonce = /name="_inline_edit" value="([^"]+)"/.exec(screen)?.[1] ?? ''
      expect(nonce).not.toBe('')
      const saved = await visit('/wp-admin/admin-ajax.php', {
        action: 'inline-save',
        post_type: 'post',
        post_ID: '1',
        _inline_edit: nonce,
        post_view: 'list',
        screen: 'edit-post',
        post_title: 'Saved in wp-admin',
        post_name: 'hello-world',
        _status: 'publish',
      })
      expect(saved.status, await saved.text()).toBe(200)
      expect(await title()).toEqual(['Saved in wp-admin', expect.stringContaining('fwd=uri-miss')])
    })

    test('requires the token for a purge', async () => {
      const purge = (headers: Record<string, string>): Promise<Response> =>
        fetch(here('http://127.0.0.1:9090/cache/purge'), {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: '{"all":true,"dryRun":true}',
        })
      expect((await purge({})).status).toBe(401)
      expect((await purge({ authorization: `Bearer ${settings().TRELLIS_ADMIN_TOKEN}` })).status).toBe(200)
    })

    test.each([
      undefined,
      'https://app.example',
      'https://app.example:8443',
      'null',
      'chrome-extension://abc',
      'https://a_b.example',
    ])('tells a reader from Origin %s what WordPress tells it', async (origin) => {
      const told = async (root: string, path: string, method: string): Promise<unknown> => {
        const response = await fetch(`${root}/index.php/wp-json${path}`, {
          method,
          headers: origin === undefined ? {} : { origin },
        })
        const { headers } = response
        const names = ['origin', 'methods', 'credentials', 'headers'].map(
          (end) => `access-control-allow-${end}`,
        )
        const headerLines = [...names, 'access-control-expose-headers'].map((name) => headers.get(name))
        // The gateway adds that it codes contents, and says of HEAD what it says of GET.
        const vary =
          method === 'HEAD' && origin === undefined
            ? ''
            : (headers.get('vary') ?? '').replace(/,? ?Accept-Encoding/i, '')
        return [response.status, headerLines, vary, await response.text()]
      }
      for (const path of [
        '/wp/v2/posts?per_page=2',
        '/wp/v2/posts/1',
        '/wp/v2/posts/999999',
        '/wp/v2/types',
      ]) {
        for (const method of ['GET', 'HEAD']) {
          expect(await told(publicUrl, path, method), `${method} ${path}`).toEqual(
            await told(wordpress.origin, path, method),
          )
        }
      }
    })

    test('sends WordPress one request for a hundred origins', async () => {
      const statusFor = async (query: string, number: number): Promise<string> => {
        const origin = `https://app-${number}.example`
        const response = await fetch(`${publicUrl}/index.php/wp-json/wp/v2/pages?${query}`, {
          headers: { origin },
        })
        await response.arrayBuffer()
        expect(response.headers.get('access-control-allow-origin')).toBe(origin)
        return response.headers.get('cache-status') ?? ''
      }
      // The first page that asks lets the gateway find out whom WordPress allows to read the route.
      let asked = 0
      const askAsAnother = (): Promise<string> => {
        asked += 1
        return statusFor('per_page=2', asked)
      }
      await expect.poll(askAsAnother).toMatch(/hit/)
      const statuses = await Promise.all(
        Array.from({ length: 100 }, (_, number) => statusFor('per_page=1', number)),
      )
      expect(statuses.filter((status) => !/hit|collapsed/.test(status))).toHaveLength(1)
    })

    test('takes a post as large and as deep as WordPress takes it', async () => {
      const response = await fetch(`${publicUrl}/index.php/wp-json/wp/v2/posts/1?_fields=id`, {
        method: 'PUT',
        headers: { authorization: basic(wordpress.credentials.admin), 'content-type': 'application/json' },
        body: JSON.stringify({
          content: 'x'.repeat(1_800_000),
          meta: JSON.parse(`${'[['.repeat(60)}${']]'.repeat(60)}`),
        }),
      })
      // A meta of that form is WordPress's to refuse, or to leave out.
      expect([200, 400]).toContain(response.status)
      expect(await response.text()).not.toContain('trellis')
    })
  })

  describe('what check and the start find', () => {
    const kinds = async (
      change: (text: string) => string,
      env: Record<string, string> = {},
    ): Promise<string[]> =>
      (await upstreamIssues(await configWith(change, env))).map(({ service, kind }) => `${service}: ${kind}`)
    const asIs = (text: string): string => text

    test('no finding for a correct configuration', async () => {
      expect(await kinds(asIs)).toEqual([])
    })

    test('a front page that redirects to itself under host: target', async () => {
      expect(await kinds((text) => text.replaceAll('host: preserve', 'host: target'))).toEqual([
        'pages: redirect-loop',
      ])
    })

    test('a home that is not the public URL', async () => {
      expect(await kinds(asIs, { TRELLIS_PUBLIC_URL: 'http://shop.example' })).toEqual([
        'wordpress: home-elsewhere',
      ])
    })

    test('an interface that is below another path', async () => {
      expect(await kinds(asIs, { WORDPRESS_REST: '/api' })).toEqual(['wordpress: wrong-base-path'])
    })

    test('an upstream that is no WordPress', async () => {
      const other = await startOrigin()
      other.script = (_, wire) => wire.respond({ content: 'hello' })
      onTestFinished(() => other.close())
      expect(await kinds(asIs, { WORDPRESS_ORIGIN: other.origin })).toEqual(['wordpress: no-wordpress'])
    })
  })
})
