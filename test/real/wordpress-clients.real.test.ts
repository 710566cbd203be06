import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isAll, rowsOf } from '../support/breadth.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { describeWith } from '../support/requirements.ts'
import { inWordPressNames } from './in-wordpress-names.ts'
import { getAnonymously, type SiteUnderTest } from './site-under-test.ts'
import { apiFetchSteps } from './steps/api-fetch-steps.ts'
import { collectionSteps, otherSteps } from './steps/collection-steps.ts'
import { readerSteps } from './steps/reader-steps.ts'
import { wpapiSteps } from './steps/wpapi-steps.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

const direct = 'directly'
const sameNames = 'through the gateway, names: same'
const neutralNames = 'through the gateway, names: wordpress'

/** Anonymous reads that must say through the gateway what they say directly, on the first and on the second time. */
const reads = [
  'posts',
  'posts?per_page=3&page=2&orderby=title&order=asc',
  'posts?_embed=1&per_page=20&order=asc',
  'posts?_fields=id,title.rendered,_links&per_page=4',
  'posts?search=day&categories=2&tags_exclude=9',
  'posts?sticky=true',
  'pages?parent=0&orderby=menu_order&order=asc',
  'media?per_page=2',
  'categories',
  'tags?per_page=3',
  'users',
  'comments',
  'search?search=garden',
  'types',
]

const modes = [
  { title: neutralNames, mount: '/index.php/site-json', names: 'wordpress' },
  { title: sameNames, mount: '/index.php/wp-json', names: 'same' },
] as const

describeWith('php', 'real clients in front of a real WordPress', () => {
  let wordpress: WordPress

  beforeAll(async () => {
    wordpress = await startWordPress()
  })
  afterAll(() => wordpress?.stop())

  // What a step says is of WordPress, and not of the gateway: what passes through it in CI passed without it.
  if (isAll)
    describe(direct, () => {
      defineSteps(() => directly(wordpress))
    })

  describe.each(rowsOf(modes, 2))('$title', (mode) => {
    let gateway: GatewayProcess
    let site: SiteUnderTest

    beforeAll(async () => {
      gateway = await startGateway(wordpress, mode)
      const isNeutral = mode.names === 'wordpress'
      site = {
        title: mode.title,
        restRoot: gateway.origin + mode.mount,
        names: isNeutral ? 'neutral' : 'wordpress',
        namespace: isNeutral ? 'site/v2' : 'wp/v2',
        throughGateway: true,
        admin: wordpress.credentials.admin,
      }
    })
    afterAll(() => gateway?.stop())

    defineSteps(() => site)

    test.each(rowsOf(reads, 20))('says what the direct answer says: %s', async (read) => {
      const plain = await getAnonymously(directly(wordpress), `wp/v2/${read}`)
      const expected: unknown = await plain.json()
      for (const time of ['first', 'second']) {
        const response = await getAnonymously(site, `${site.namespace}/${read}`)
        expect(response.status, time).toBe(plain.status)
        expect(inWordPressNames(await response.json(), site, wordpress.restRoot), time).toEqual(expected)
        for (const name of ['x-wp-total', 'x-wp-totalpages', 'content-type']) {
          expect(response.headers.get(name), `${time}: ${name}`).toBe(plain.headers.get(name))
        }
        if (time === 'second') expect(response.headers.get('cache-status')).toMatch(/^trellis; ?hit/)
      }
    })

    test('a repeated anonymous GET is a hit', async () => {
      const path = `${site.namespace}/posts?per_page=6&_fields=id,link`
      const first = await getAnonymously(site, path)
      expect(first.headers.get('cache-status')).toMatch(/^trellis; ?fwd=uri-miss/)
      const second = await getAnonymously(site, path)
      expect(second.headers.get('cache-status')).toMatch(/^trellis; ?hit/)
      expect(await second.text()).toBe(await first.text())
    })
  })
})

function defineSteps(site: () => SiteUnderTest): void {
  test.each(wpapiSteps)('wpapi: $title', (step) => step.run(site()))
  test.each(apiFetchSteps)('api-fetch: $title', (step) => step.run(site()))
  test.each(collectionSteps)('collections: $title', (step) => step.run(site()))
  test.each(otherSteps)('$title', (step) => step.run(site()))
  test.each(readerSteps)('readers: $title', (step) => step.run(site()))
}

function directly(wordpress: WordPress): SiteUnderTest {
  return {
    title: direct,
    restRoot: wordpress.restRoot,
    names: 'wordpress',
    namespace: 'wp/v2',
    throughGateway: false,
    admin: wordpress.credentials.admin,
  }
}

async function startGateway(
  wordpress: WordPress,
  service: { mount: string; names: 'same' | 'wordpress' },
): Promise<GatewayProcess> {
  return startGatewayProcess({
    services: {
      site: {
        contract: 'site',
        mount: service.mount,
        names: service.names,
        upstream: { targets: [wordpress.origin], basePath: '/index.php/wp-json' },
        cache: { rules: [{ match: 'GET /*/v2/**', ttl: '60s', staleWhileRevalidate: '30s' }] },
      },
    },
  })
}
