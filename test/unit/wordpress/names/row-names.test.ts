import { expect, test } from 'vitest'
import { rowsInOtherNames } from '../../../../src/wordpress/names/names.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { table } from './wordpress-names.ts'

const upstreamRows = rowsInOtherNames(siteRows, table)

test("the rows carry WordPress's names and nothing neutral", () => {
  expect(upstreamRows).toHaveLength(siteRows.length)
  const texts = upstreamRows.flatMap((row) => [
    row.template,
    row.pattern,
    row.namespace,
    ...row.endpoints.flatMap((endpoint) => Object.keys(endpoint.arguments)),
  ])
  expect(texts.filter((text) => /site\/v2|contact-form\/|site_id|site_pattern/.test(text))).toEqual([])
  expect(texts).toContain('wp/v2')
  expect(texts).toContain('wp_pattern_category_exclude')
})

test('nested names and the default of `namespace` are mapped too', () => {
  const index = upstreamRows.find((row) => row.template === '/wp/v2')
  expect(index?.endpoints[0]?.arguments['namespace']?.default).toBe('wp/v2')
  const blocks = upstreamRows.find((row) => row.template === '/wp/v2/blocks')
  const create = blocks?.endpoints.find((endpoint) => endpoint.methods.includes('POST'))
  expect(Object.keys(create?.arguments['meta']?.properties ?? {})).toContain('wp_pattern_sync_status')
})

test('ids, collections and kinds stay', () => {
  const parts = (rows: typeof siteRows) =>
    rows.map(({ id, collection, kind, handledBy }) => [id, collection, kind, handledBy])
  expect(parts(upstreamRows)).toEqual(parts(siteRows))
})

test('mapping twice gives the original rows', () => {
  expect(rowsInOtherNames(upstreamRows, table)).toEqual(siteRows)
})
