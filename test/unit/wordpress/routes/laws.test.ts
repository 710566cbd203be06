import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openRows } from '../../../../src/service/open.ts'
import { createRouter } from '../../../../src/service/router.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'
import { anyText } from '../../../support/any-text.ts'

const site = createRouter(siteRows)
const open = createRouter(openRows)

const identifiers = fc.constantFrom(
  ...[
    '5',
    '007',
    '0',
    '+5',
    '%35',
    'mine',
    'mine/home',
    'mine//home',
    'mine%2F%2Fhome',
    'all/mine//home',
    'x',
  ],
  ...[
    'x/revisions',
    'a.b',
    'a%20b',
    '%C3%A9',
    'a%C3%A9-b',
    '%2541',
    '%25d0-b',
    '[1]',
    'a%3Cb',
    'a<b',
    'lookup',
    'a:b',
    '5/6',
  ],
)

/** A path of some row, with identifiers that match it or do not. */
const routePaths = fc
  .tuple(fc.constantFrom(...siteRows), fc.array(identifiers, { minLength: 2, maxLength: 2 }))
  .map(([row, values]) => values.reduce((path, value) => path.replace(/\{\w+\}/, value), row.template))

const oddities = fc.constantFrom(
  ...[
    '%2e%2E',
    '..',
    '.',
    '%2F',
    '%2f',
    '%25',
    '%5C',
    '%00',
    'é',
    ' ',
    '\\',
    ';x',
    '%5b',
    '@',
    '&',
    '|',
    '%',
    '//',
  ],
  ...['/revisions', '/autosaves/', '/autosaves/5', '/variations', '/feedback', '99999999999999999999'],
)

/** The same with text inserted at some position, perhaps in upper case. */
const oddPaths = fc
  .tuple(routePaths, fc.nat(), oddities, fc.boolean())
  .map(([path, place, oddity, inUpperCase]) => {
    const at = place % (path.length + 1)
    const odd = path.slice(0, at) + oddity + path.slice(at)
    return inUpperCase ? odd.toUpperCase() : odd
  })

const paths = fc.oneof({ arbitrary: routePaths, weight: 2 }, { arbitrary: oddPaths, weight: 3 })
const methods = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'FOO')

describe.each([
  ['site', site],
  ['open', open],
])('laws of the routes of the %s contract', (_name, router) => {
  test('a canonical path is its own canonical form', () => {
    fc.assert(
      fc.property(methods, paths, (method, path) => {
        const routeMatch = router.find(method, path)
        fc.pre(routeMatch.kind !== 'refused')
        expect(router.find(method, routeMatch.path)).toEqual(routeMatch)
      }),
      { numRuns: 1000 },
    )
  })

  test('the path to the upstream is an absolute path without dot segments', () => {
    fc.assert(
      fc.property(methods, fc.oneof(paths, anyText()), (method, path) => {
        const routeMatch = router.find(method, path)
        if (routeMatch.kind === 'refused') return
        expect(routeMatch.path).toMatch(/^\/(?:[\w\-.~!$&'()*+,;=:@/]|%[0-9A-F]{2})*$/)
        expect(routeMatch.path).not.toMatch(/^\/\//)
        expect(decodeURIComponent(routeMatch.path).split('/')).not.toContain('..')
      }),
      { numRuns: 1000 },
    )
  })
})

test('letter case and repeated slashes do not change the row that is found', () => {
  fc.assert(
    fc.property(paths, fc.constantFrom('/', '//', '///'), (path, more) => {
      const routeMatch = site.find('GET', path)
      fc.pre(routeMatch.kind === 'found' && routeMatch.row.endpoints.length > 0)
      const again = site.find('GET', `${path.replaceAll('/', more)}${more}`)
      expect(again).toEqual(routeMatch)
    }),
    { numRuns: 1000, maxSkipsPerRun: 1000 },
  )
})

const compiled = siteRows.map((row) => ({
  row,
  expression: new RegExp(`^${row.pattern.replaceAll('(?P<', '(?<')}$`, 'i'),
}))

/** The row that PHP's matcher picks. */
const rowAtWordPress = (method: string, path: string): string | undefined =>
  compiled.find(
    ({ row, expression }) =>
      expression.test(path) && row.endpoints.some(({ methods: some }) => some.some((one) => one === method)),
  )?.row.id

test('WordPress matches the same row as the gateway, or none, however it decodes the path', () => {
  fc.assert(
    fc.property(fc.constantFrom('GET', 'POST', 'DELETE'), paths, (method, path) => {
      const routeMatch = site.find(method, path)
      fc.pre(routeMatch.kind !== 'refused')
      const id = routeMatch.kind === 'found' ? routeMatch.row.id : undefined
      // PHP reads bytes: undone escapes of one character are several.
      const bytes = Buffer.from(decodeURIComponent(routeMatch.path)).toString('latin1')
      const readings = [routeMatch.path, bytes]
      for (const reading of readings.flatMap((one) => [one, one.replace(/\/{2,}/g, '/')])) {
        expect([id, undefined]).toContain(rowAtWordPress(method, reading))
      }
    }),
    { numRuns: 1000 },
  )
})
