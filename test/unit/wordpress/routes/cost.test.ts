import { describe, expect, test } from 'vitest'
import { createRouter, type Router } from '../../../../src/service/router.ts'
import type { Row } from '../../../../src/service/row.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { cost } from '../../../support/cost.ts'

const site = createRouter(siteRows)

const milliseconds = (router: Router, path: string, enough: number): number =>
  cost(() => router.find('GET', path), enough)

const upTo = (length: number, beginning: string, repeated: string, end = ''): string =>
  beginning + repeated.repeat(Math.floor((length - beginning.length - end.length) / repeated.length)) + end

const templates = '/site/v2/templates/'

describe('every path is matched in little time', () => {
  test.each([
    ['one long name', templates, 'a', ':'],
    ['many slashes', templates, 'a/', '!'],
    ['many escapes', templates, '%2F', ''],
    ['many encoded letters', templates, '%C3%A9', ''],
    ['many ends', templates, 'ab/revisions/', '!'],
    ['many almost-ends', templates, 'ab/autosaves/9/', '!'],
    ['many digits', '/site/v2/posts/', '0', 'x'],
    ['many zeros', '/site/v2/global-styles/', '0', ''],
    ['many signs', '/site/v2/global-styles/', '+', '/1'],
    ['many theme names', '/site/v2/global-styles/themes/', 'a/', '/variations!'],
    ['nothing but slashes', '/', '/', ''],
    ['many dots', '/', '.../', ''],
    ['many percent signs', '/', '%25', ''],
  ])('%s, at the longest length that is matched and at 8 KiB', (_what, beginning, repeated, end) => {
    expect(milliseconds(site, upTo(2048, beginning, repeated, end), 5)).toBeLessThan(5)
    expect(milliseconds(site, upTo(8192, beginning, repeated, end), 1)).toBeLessThan(1)
  })

  test('a pattern made for backtracking takes time in proportion to the path', () => {
    const row: Row = {
      id: 'x',
      template: '/x',
      pattern: '/v1/(?P<x>(?:(?:a|a)*)*(?:a+)+(?:a|aa)+)~',
      namespace: '',
      collection: '',
      kind: 'item',
      handledBy: 'upstream',
      endpoints: [{ methods: ['GET'], arguments: {} }],
    }
    const router = createRouter([row])
    const path = `/v1/${'a'.repeat(500)}~`
    expect(router.find('GET', path)).toMatchObject({ kind: 'found', path })
    expect(milliseconds(router, upTo(2048, '/v1/', 'a', 'b~'), 20)).toBeLessThan(20)
  })
})
