import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compareValues } from '../contracts/compare-values.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { startProcess } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'
import { expectedInIndex } from './differential/index-differences.ts'
import { type Relay, startRelay } from './differential/relay.ts'
import type { Behind } from './differential/run-cases.ts'
import { startBothNames } from './differential/services.ts'
import { asWordPress, inNeutralNames, routesAsWordPress } from './differential/spelling.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

type Document = Readonly<Record<string, unknown>> & { readonly routes?: Readonly<Record<string, unknown>> }
type Drift = { readonly kind: string; readonly matters: boolean; readonly argument?: string }
type Told = { readonly document: Document; readonly allow: string | null; readonly status: number }

/** Whose schemas the block editor reads before it shows a form, and those of one of each kind. */
const described = [
  ...[
    '/wp/v2/posts',
    '/wp/v2/posts/4',
    '/wp/v2/pages',
    '/wp/v2/media/121',
    '/wp/v2/blocks',
    '/wp/v2/settings',
  ],
  ...[
    '/wp/v2/types',
    '/wp/v2/taxonomies',
    '/wp/v2/categories',
    '/wp/v2/tags/8',
    '/wp/v2/users/me',
    '/wp/v2/comments',
  ],
  ...[
    '/wp/v2/templates/twentytwentyfour//home',
    '/wp/v2/menu-items',
    '/wp/v2/navigation',
    '/wp/v2/posts/4/revisions',
  ],
]

/** What the data layer of the block editor asks for when it starts. */
const editorReads = [
  '/wp/v2/types?context=view',
  '/wp/v2/types?per_page=-1&context=view',
  '/wp/v2/types/post?context=edit',
  '/wp/v2/taxonomies?context=view&per_page=100',
  '/wp/v2/taxonomies?context=edit',
  '/wp/v2/settings',
  '/wp/v2/users/me?context=edit&_fields=id,name,capabilities',
  '/wp/v2/themes?context=edit&status=active&_fields=stylesheet',
  '/wp/v2/block-patterns/categories',
  '/wp/v2/templates/lookup?slug=front-page&_fields=id',
  '/?_fields=description,gmt_offset,home,name,site_icon,site_icon_url,site_logo,timezone_string,url',
]

const unexplained = (here: unknown, there: unknown) =>
  compareValues(here, there).filter((difference) => !expectedInIndex.some(({ covers }) => covers(difference)))

describeWith('php', 'discovery documents in front of a real WordPress', () => {
  let wordpress: WordPress
  let relay: Relay
  let both: Awaited<ReturnType<typeof startBothNames>>

  beforeAll(async () => {
    wordpress = await startWordPress()
    relay = await startRelay(wordpress.origin)
    both = await startBothNames({ same: relay, wordpress: relay })
  })
  afterAll(async () => {
    await both?.gateway.close()
    await relay?.close()
    await wordpress?.stop()
  })

  const asked = async (address: string, method: string, asAdmin: boolean): Promise<Told> => {
    const headers = asAdmin ? { Authorization: basic(wordpress.credentials.admin) } : {}
    const response = await fetch(address, { method, headers })
    const document = (await response.json()) as Document
    return { document, allow: response.headers.get('allow'), status: response.status }
  }
  /** Nothing is written: both names are compared with the same answers. */
  const answers = new Map<string, Promise<Told>>()
  const direct = (path: string, method = 'GET', asAdmin = false): Promise<Told> => {
    const key = `${method} ${path} ${asAdmin}`
    const answer = answers.get(key) ?? asked(wordpress.restRoot + path, method, asAdmin)
    answers.set(key, answer)
    return answer
  }
  const through = async (title: string, path: string, method = 'GET', asAdmin = false): Promise<Told> => {
    const { site } = both.services.find((one) => one.title === title) as Behind
    const target = site.names === 'neutral' ? inNeutralNames(path) : path
    const told = await asked(site.restRoot + target, method, asAdmin)
    const document = asWordPress(told.document, site, wordpress.restRoot) as Document
    if (document.routes === undefined) return { ...told, document }
    return { ...told, document: { ...document, routes: routesAsWordPress(document.routes, site) } }
  }

  test('all differences are changes from WordPress 6.7 to 6.9, none comes from the gateway or plugins, and none is drift', async () => {
    const response = await fetch(`${both.gateway.adminAddress}/drift`)
    const { services } = (await response.json()) as { services: readonly { differences: readonly Drift[] }[] }
    const told = services.map(({ differences }) =>
      [...new Set(differences.map(({ kind, argument }) => `${kind} ${argument ?? ''}`.trim()))].sort(),
    )
    const newer = ['format', 'ignore_sticky', 'search_columns', 'search_semantics']
    const newerOfEdits = ['alt_text', 'caption', 'description', 'post', 'title']
    const changed = ['app_id', 'id', 'locale', 'media_type', 'meta', 'mime_type', 'modifiers']
    const expected = [
      ...[...newer, ...newerOfEdits].map((name) => `argument-missing ${name}`),
      ...changed.map((name) => `argument-changed ${name}`),
      'pattern-changed',
    ].sort()
    expect(told).toEqual([expected, expected])
    expect(services.flatMap(({ differences }) => differences).filter(({ matters }) => matters)).toEqual([])
  })

  test('routes --drift ends with 0, and lists in what another version differs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-drift-'))
    const file = join(folder, 'gateway.yaml')
    const upstream = { targets: [wordpress.origin], basePath: '/index.php/wp-json' }
    const site = { contract: 'site', mount: '/wp-json', names: 'wordpress', upstream }
    await writeFile(file, JSON.stringify({ services: { site } }))
    const program = startProcess(process.execPath, [await builtGateway(), 'routes', '--drift', '-c', file])
    const end = await program.ended
    expect(program.output()).toMatch(/^\d+ differences, 0 of drift$/m)
    expect(end).toBe(0)
  })

  describe.each(['names: same', 'names: wordpress'])('%s', (title) => {
    test('the index has the identity of the site, and every route with what is enforced', async () => {
      const [{ document: here }, { document: there }] = [await through(title, '/'), await direct('/')]
      expect(unexplained(here, there)).toEqual([])
      const differences = compareValues(here, there)
      const stale = expectedInIndex.filter(({ covers }) => !differences.some(covers))
      expect(stale.map(({ reason }) => reason)).toEqual([])
      expect(Object.keys(there.routes ?? {}).length).toBeGreaterThan(100)
    })

    test.each(['/wp/v2', '/oembed/1.0', '/wp-site-health/v1', '/wp-block-editor/v1'])(
      'the index of %s lists what WordPress lists',
      async (path) => {
        const [{ document: here }, { document: there }] = [await through(title, path), await direct(path)]
        expect(unexplained(here, there)).toEqual([])
      },
    )

    test.each(described)('OPTIONS %s describes what WordPress describes', async (path) => {
      for (const asAdmin of [false, true]) {
        const [here, there] = [
          await through(title, path, 'OPTIONS', asAdmin),
          await direct(path, 'OPTIONS', asAdmin),
        ]
        expect({ status: here.status, allow: here.allow }).toEqual({
          status: there.status,
          allow: there.allow,
        })
        expect(unexplained(here.document, there.document)).toEqual([])
      }
    })

    test.each(editorReads)('the block editor reads what it would read directly: %s', async (path) => {
      const [here, there] = [await through(title, path, 'GET', true), await direct(path, 'GET', true)]
      expect(here).toEqual(there)
    })
  })
})
