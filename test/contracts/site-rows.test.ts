import { describe, expect, test } from 'vitest'
import { compileRowPattern } from '../../src/service/route-paths.ts'
import type { Row } from '../../src/service/row.ts'
import { keyNames, namespaceNames, segmentNames } from '../../src/wordpress/names/name-table.ts'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'

const rowOf = (id: string): Row => {
  const row = siteRows.find((candidate) => candidate.id === id)
  if (row === undefined) throw new Error(`no row ${id}`)
  return row
}

const argumentsOf = (id: string, method: string) =>
  rowOf(id).endpoints.find((endpoint) => endpoint.methods.some((one) => one === method))?.arguments ?? {}

const marked = (mark: 'allowBatch' | 'acceptsUploads', value: boolean): string[] =>
  siteRows.flatMap((row) =>
    row.endpoints.flatMap((one) => (one[mark] === value ? [`${one.methods.join(',')} ${row.template}`] : [])),
  )

describe('the rows of the site contract', () => {
  test.each(['id', 'template', 'pattern'] as const)('no two rows share their %s', (name) => {
    expect(new Set(siteRows.map((row) => row[name])).size).toBe(58)
  })

  test('every pattern is matched by the router', () => {
    expect(siteRows.filter(({ pattern }) => compileRowPattern(pattern).kind !== 'pattern')).toEqual([])
  })

  test('templates name the groups of the pattern', () => {
    for (const { template, pattern } of siteRows) {
      const groups = Array.from(pattern.matchAll(/\(\?P<(\w+)>/g), (found) => found[1])
      expect(Array.from(template.matchAll(/\{(\w+)\}/g), (found) => found[1])).toEqual(groups)
    }
  })

  test('no method is in two endpoints of a row', () => {
    for (const { endpoints } of siteRows) {
      const methods = endpoints.flatMap((endpoint) => endpoint.methods)
      expect(new Set(methods).size).toBe(methods.length)
    }
  })

  test('rows count by namespace as the contract lists them', () => {
    const counts: Record<string, number> = {}
    for (const { namespace } of siteRows) counts[namespace] = (counts[namespace] ?? 0) + 1
    expect(counts).toEqual({ '': 2, 'oembed/1.0': 3, 'contact-form/v1': 6, 'site/v2': 47 })
  })

  test('rows count by kind', () => {
    const counts: Record<string, number> = {}
    for (const { kind } of siteRows) counts[kind] = (counts[kind] ?? 0) + 1
    expect(counts).toEqual({
      index: 4,
      batch: 1,
      lookup: 4,
      collection: 9,
      item: 9,
      revisions: 6,
      revision: 6,
      autosaves: 6,
      autosave: 6,
      action: 3,
      related: 4,
    })
  })

  test('the gateway answers the indexes and the batch itself', () => {
    const own = siteRows.filter((row) => row.handledBy !== 'upstream')
    expect(own.map((row) => `${row.handledBy} ${row.template}`)).toEqual([
      'discovery /',
      'batch /batch/v1',
      'discovery /oembed/1.0',
      'discovery /contact-form/v1',
      'discovery /site/v2',
    ])
  })

  test('posts, pages, menu items, blocks and navigation can be batched', () => {
    const batchable = ['posts', 'pages', 'menu-items', 'blocks'].flatMap((name) => [
      `GET /site/v2/${name}`,
      `POST /site/v2/${name}`,
      `GET /site/v2/${name}/{id}`,
      `POST,PUT,PATCH /site/v2/${name}/{id}`,
      `DELETE /site/v2/${name}/{id}`,
    ])
    expect(marked('allowBatch', true)).toEqual([
      ...batchable,
      'GET /site/v2/navigation',
      'POST /site/v2/navigation',
    ])
  })

  test('three rows of global styles say that they cannot be batched', () => {
    expect(marked('allowBatch', false)).toEqual([
      'GET /site/v2/global-styles/themes/{stylesheet}/variations',
      'GET /site/v2/global-styles/themes/{stylesheet}',
      'GET /site/v2/global-styles/{id}',
      'POST,PUT,PATCH /site/v2/global-styles/{id}',
    ])
  })

  test('files are taken where media are created and where forms are sent', () => {
    expect(marked('acceptsUploads', true)).toEqual([
      'POST /contact-form/v1/contact-forms',
      'POST,PUT,PATCH /contact-form/v1/contact-forms/{id}',
      'POST /contact-form/v1/contact-forms/{id}/feedback',
      'POST /site/v2/media',
    ])
  })

  test.each([
    ['posts.collection', 10, 'desc', 'date', 'publish'],
    ['pages.collection', 10, 'desc', 'date', 'publish'],
    ['media.collection', 10, 'desc', 'date', 'inherit'],
    ['menu-items.collection', 100, 'asc', 'menu_order', 'publish'],
    ['blocks.collection', 10, 'desc', 'date', 'publish'],
    ['navigation.collection', 10, 'desc', 'date', 'publish'],
    ['posts.revisions', undefined, 'desc', 'date', undefined],
  ])('%s lists %s items, %s by %s, with status %s', (id, perPage, order, orderBy, status) => {
    const query = argumentsOf(id, 'GET')
    expect(query['per_page']).toMatchObject({ minimum: 1, maximum: 100 })
    expect(query['per_page']?.default).toBe(perPage)
    expect(query['order']?.default).toBe(order)
    expect(query['orderby']?.default).toBe(orderBy)
    expect(query['status']?.default).toBe(status)
  })

  test.each(['posts', 'pages', 'media', 'menu-items', 'blocks', 'templates', 'template-parts'])(
    'updating %s takes what creation takes and the identifier, with no defaults and nothing required',
    (name) => {
      const created = argumentsOf(`${name}.collection`, 'POST')
      const updated = argumentsOf(`${name}.item`, 'PUT')
      expect(Object.keys(updated)).toEqual(['id', ...Object.keys(created)])
      for (const schema of Object.values(updated)) {
        expect(schema).not.toHaveProperty('default')
        expect(schema).not.toHaveProperty('required')
      }
    },
  )
})

describe('the names', () => {
  test.each([
    ['namespaces', namespaceNames],
    ['keys', keyNames],
    ['segments', segmentNames],
  ])('of %s go both ways', (_what, pairs) => {
    expect(new Set(pairs.map((pair) => pair.neutral)).size).toBe(pairs.length)
    expect(new Set(pairs.map((pair) => pair.wordpress)).size).toBe(pairs.length)
  })
})
