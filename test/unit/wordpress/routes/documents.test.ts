import { describe, expect, test } from 'vitest'
import { headerValue } from '../../../../src/http/headers/header-lines.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { parsed, publicDocument, publicRoot, watched } from '../index/upstream-index.ts'

describe('the site index', () => {
  test("is WordPress's own, under public names", async () => {
    const { discovery } = watched()
    const document = parsed(await discovery.index(''))
    const theirs = publicDocument()
    expect(Object.keys(document)).toEqual(Object.keys(theirs))
    expect(document).toEqual(theirs)
  })

  test('does not mention the upstream where clients follow links', async () => {
    const { discovery } = watched()
    const text = JSON.stringify(parsed(await discovery.index('')))
    expect(text).not.toMatch(/wp-json|wp\/v2|wp_id/)
    expect(text).toContain(`"href":"${publicRoot}/site/v2/posts"`)
  })

  test('is one buffer, made once', async () => {
    const { discovery } = watched()
    const first = await discovery.index('')
    expect(discovery.index('')).toBe(first)
    expect(discovery.index('context=edit')).toBe(first)
  })

  test("has WordPress's headers and a strong validator", async () => {
    const { discovery } = watched()
    const response = await discovery.index('')
    if (response.kind !== 'document') throw new Error('no document')
    expect(headerValue(response.fields, 'content-type')).toBe('application/json; charset=UTF-8')
    expect(headerValue(response.fields, 'link')).toBe(`<${publicRoot}/>; rel="https://api.w.org/"`)
    expect(headerValue(response.fields, 'allow')).toBe('GET')
    expect(headerValue(response.fields, 'etag')).toMatch(/^"[\w-]{24}"$/)
    expect(response.content.toString()).toMatch(
      /^\{"name":"Test site",.*"\\\/site\\\/v2\\\/posts\\\/\(\?P<id>\[\\\\d\]\+\)":/,
    )
    expect(/[^ -~]/.test(response.content.toString('latin1'))).toBe(false)
  })

  test.each([
    ['_fields=name', { name: 'Test site' }],
    ['_fields=name,home&_fields[]=nope', { name: 'Test site', home: 'http://wordpress.test' }],
    ['_fields[]=show_on_front&_fields[]=site_icon', { show_on_front: 'posts', site_icon: 0 }],
    ['_fields=authentication.application-passwords.endpoints', publicDocument()['authentication']],
    ['_fields=routes./site/v2/posts.methods', undefined],
    ['_fields=name,name.x', { name: 'Test site' }],
    ['_fields=authentication,authentication.x', publicDocument()['authentication']],
    ['_fields=authentication.x,authentication', publicDocument()['authentication']],
    ['_fields=namespaces.0', { namespaces: [] }],
    ['_fields=name.x', []],
    ['_fields=nope', []],
    ['_fields=__proto__,constructor', []],
  ])('%s', async (query, expected) => {
    const { discovery } = watched()
    const document = parsed(await discovery.index(query))
    if (expected === undefined) {
      expect(document).toEqual({ routes: { '/site/v2/posts': { methods: ['GET', 'POST'] } } })
    } else if (query.includes('authentication')) expect(document).toEqual({ authentication: expected })
    else expect(document).toEqual(expected)
  })
})

describe('a namespace index', () => {
  test.each([
    ['site/v2', 104],
    ['oembed/1.0', 3],
    ['contact-form/v1', 6],
    ['site-health/v1', 8],
    ['block-editor/v1', 4],
    ['abilities/v1', 6],
  ])('of %s has %i routes, each as in the site index', async (namespace, count) => {
    const { discovery } = watched()
    const all = parsed(await discovery.index(''))['routes'] as Record<string, unknown>
    const document = parsed(await discovery.namespaceIndex(namespace, ''))
    expect(Object.keys(document)).toEqual(['namespace', 'routes', '_links'])
    expect(document['namespace']).toBe(namespace)
    expect(document['_links']).toEqual({ up: [{ href: `${publicRoot}/` }] })
    const routes = Object.entries(document['routes'] as Record<string, unknown>)
    for (const [pattern, entry] of routes) expect(entry).toEqual(all[pattern])
    expect(routes).toHaveLength(count)
  })

  test.each(['wp/v2', 'nope', '', 'constructor'])('of %j is not announced', async (namespace) => {
    const { discovery } = watched()
    expect(await discovery.namespaceIndex(namespace, '')).toEqual({ kind: 'unknown-namespace' })
  })

  test('of the table is known before the upstream is', async () => {
    const { discovery } = watched({ fetchIndex: () => Promise.reject(new Error('down')) })
    expect(Object.keys(parsed(await discovery.namespaceIndex('site/v2', '_fields=namespace')))).toEqual([
      'namespace',
    ])
    expect(await discovery.index('')).toEqual({ kind: 'identity-unknown' })
  })
})

describe('OPTIONS', () => {
  const rowOf = (id: string) => siteRows.find((row) => row.id === id) as (typeof siteRows)[number]

  test('of a route of the upstream sends a request to the upstream, and has the arguments without it', async () => {
    const { discovery } = watched()
    await discovery.index('')
    const response = discovery.options(rowOf('posts.collection'))
    if (response.kind !== 'ask-upstream') throw new Error('not asked')
    const theirs = publicDocument().routes['/site/v2/posts']
    expect(parsed(response.fallback)).toEqual(theirs)
    expect(headerValue(response.fallback.fields, 'allow')).toBe('GET, POST')
  })

  test('of routes that the gateway answers itself is complete', async () => {
    const { discovery } = watched()
    await discovery.index('')
    expect(parsed(discovery.options(rowOf('batch')))).toEqual(publicDocument().routes['/batch/v1'])
  })

  test('has built-in descriptions as long as the upstream has announced none', () => {
    const response = watched().discovery.options(rowOf('batch'))
    expect(JSON.stringify(parsed(response))).toContain('"description":"Requests to run, in order."')
  })
})

describe('an upstream without the plugin of a row', () => {
  function* unchanged(content: Buffer): Generator<void, Buffer> {
    yield
    return content
  }

  const plain = (): Buffer => {
    const document = publicDocument()
    document['namespaces'] = (document['namespaces'] as string[]).filter((name) => name !== 'contact-form/v1')
    for (const pattern of Object.keys(document.routes)) {
      if (pattern.startsWith('/contact-form/')) delete document.routes[pattern]
    }
    return Buffer.from(JSON.stringify(document))
  }

  test('is announced without it', async () => {
    const fetchIndex = async () => ({ status: 200, content: plain() })
    const { discovery } = watched({ fetchIndex, toPublic: unchanged })
    expect(parsed(await discovery.index(''))).toEqual(JSON.parse(plain().toString()))
    expect(await discovery.namespaceIndex('contact-form/v1', '')).toEqual({ kind: 'unknown-namespace' })
    expect(discovery.drift()).toEqual([])
  })
})

describe('what unlisted routes are to be', () => {
  test.each([
    ['learn', 133, 6],
    ['pass', 133, 6],
    ['refuse', 58, 3],
  ] as const)(
    'with %s %i routes in %i namespaces are announced',
    async (unlistedRoutes, routes, namespaces) => {
      const { discovery, learned } = watched({ unlistedRoutes })
      const document = parsed(await discovery.index(''))
      expect(Object.keys(document['routes'] as object)).toHaveLength(routes)
      expect(document['namespaces']).toHaveLength(namespaces)
      expect(learned).toHaveLength(1)
      expect(learned[0]?.length).toBe(unlistedRoutes === 'learn' ? 75 : 0)
    },
  )

  test('a static identity sends no request', async () => {
    const { discovery } = watched({
      source: { kind: 'static', identity: { name: 'Still', extra: 1 } },
      fetchIndex: () => Promise.reject(new Error('asked')),
    })
    discovery.start()
    const document = parsed(await discovery.index(''))
    expect(Object.keys(document)).toEqual(['name', 'namespaces', 'authentication', 'routes', 'extra'])
    expect(Object.keys(document['routes'] as object)).toHaveLength(58)
    expect(discovery.upstream.root).toBeUndefined()
    await discovery.close()
  })
})
