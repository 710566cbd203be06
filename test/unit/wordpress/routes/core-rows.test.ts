import { expect, test } from 'vitest'
import { learnRows } from '../../../../src/wordpress/index/learn-rows.ts'
import type { IndexSettings } from '../../../../src/wordpress/index/site-index.ts'
import { emptyIndex, knowledgeOf } from '../../../../src/wordpress/index/site-index.ts'
import { coreRows } from '../../../../src/wordpress/routes/core-rows.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { indexOf, publicDocument, publicRoot } from '../index/upstream-index.ts'

const rows = [...siteRows, ...coreRows]
const settings: IndexSettings = {
  rows,
  registered: rows,
  publicRoot,
  unlistedRoutes: 'learn',
  undeclaredParameters: 'forward',
}

test('they are the routes of WordPress 6.9 that would be learned without them', () => {
  const real = indexOf(publicDocument())
  const { rows: learned } = learnRows(real, siteRows)
  const facts = (list: typeof learned) =>
    list.map(({ id, template, pattern, namespace, collection, kind, handledBy, endpoints }) => ({
      ...{ id, template, pattern, namespace, collection, kind, handledBy },
      endpoints: endpoints.map(({ methods, allowBatch, acceptsUploads, arguments: args }) => ({
        ...{ methods, allowBatch, acceptsUploads },
        names: Object.keys(args),
      })),
    }))
  expect(facts(coreRows)).toEqual(facts(learned))
})

test('nothing of 6.9 is learned, and nothing differs', () => {
  const known = knowledgeOf(indexOf(publicDocument()), settings)
  expect(known.learned).toEqual({ rows: [], refusals: [] })
  const ofCore = new Set(coreRows.map(({ template }) => template))
  expect(known.drift.filter(({ route, matters }) => matters && ofCore.has(route))).toEqual([])
  for (const row of coreRows) {
    const listed = known.listed.find(({ pattern }) => pattern === row.pattern)
    expect([row.id, listed?.endpoints.map(({ asSent }) => asSent)]).toEqual([
      row.id,
      row.endpoints.map(() => undefined),
    ])
  }
})

test('a version without one of them announces and matches it no more than before, and that is no drift', () => {
  const document = publicDocument()
  const pattern = '/abilities/v1/abilities'
  delete document.routes[pattern]
  const known = knowledgeOf(indexOf(document), settings)
  expect(known.listed.some((row) => row.pattern === pattern)).toBe(false)
  expect(Object.keys(known.site.site.routes)).not.toContain(pattern)
  expect(known.drift.filter(({ route }) => route === pattern)).toEqual([])
})

test('before the first index they are matched, and not announced', () => {
  const known = knowledgeOf(emptyIndex, settings)
  expect(known.listed).toBe(rows)
  expect(Object.keys(known.site.site.routes)).toEqual(siteRows.map(({ pattern }) => pattern))
})

test('routes that plugins add to namespaces of core keep names of their own', () => {
  const document = publicDocument()
  const entry = {
    namespace: 'block-editor/v1',
    methods: ['GET'],
    endpoints: [{ methods: ['GET'], args: {} }],
  }
  document.routes['/block-editor/v1/posts'] = entry as never
  const { rows: learned } = learnRows(indexOf(document), rows)
  expect(learned.map(({ collection }) => collection)).toEqual(['block-editor/v1/posts'])
})
