import { describe, expect, test } from 'vitest'
import { siteRows } from '../../src/wordpress/routes/route-table.ts'
import { compareValues, type Difference } from './compare-values.ts'
import { announcedRoutes, routesOf } from './discovery-document.ts'
import { expectedDifferences, unlistedRoutes } from './expected-differences.ts'

const theirs = announcedRoutes()
const ours = routesOf(siteRows)
const listed = Object.keys(ours)
const unlisted = unlistedRoutes.flatMap((group) => group.patterns)

/** What a discovery document says of each route besides its address. */
const comparable = (routes: typeof theirs, pattern: string): unknown => {
  const route = routes[pattern]
  return route && { namespace: route.namespace, methods: route.methods, endpoints: route.endpoints }
}

const differences: readonly Difference[] = listed.flatMap((pattern) =>
  compareValues(comparable(ours, pattern), comparable(theirs, pattern), [pattern]),
)

const told = ({ path, ours: mine, theirs: others }: Difference): string =>
  `${path.join(' > ')}: ${JSON.stringify(mine)} here, ${JSON.stringify(others)} in WordPress`

describe('the site contract against what WordPress 6.9 announces', () => {
  test('58 rows are compared, each with a route of the same pattern, in the same order', () => {
    expect(listed).toHaveLength(58)
    expect(Object.keys(theirs).filter((pattern) => listed.includes(pattern))).toEqual(listed)
  })

  test('every announced route is a row or an unlisted route with a reason, and none is both', () => {
    expect([...listed, ...unlisted].sort()).toEqual(Object.keys(theirs).sort())
    expect(unlisted).toHaveLength(75)
  })

  test('95 endpoints with 613 arguments are compared, in the order in which they are announced', () => {
    const argumentNames = (routes: typeof theirs): string[] =>
      listed.flatMap((pattern) =>
        (routes[pattern]?.endpoints ?? []).flatMap(({ methods, args }) => [
          `${pattern} ${methods.join()}`,
          ...Object.keys(args as object).map((name) => `${pattern} ${methods.join()} ${name}`),
        ]),
      )
    expect(argumentNames(ours)).toHaveLength(95 + 613)
    expect(argumentNames(ours)).toEqual(argumentNames(theirs))
  })

  test('no keyword differs without a reason', () => {
    const unexplained = differences.filter(
      (difference) => !expectedDifferences.some((one) => one.covers(difference)),
    )
    expect(unexplained.map(told)).toEqual([])
  })

  test.each(expectedDifferences)('$reason: $count times', ({ covers, count }) => {
    expect(differences.filter(covers)).toHaveLength(count)
  })

  test('every argument is described, in other words than those of WordPress', () => {
    const descriptions = (value: unknown): string[] =>
      typeof value !== 'object' || value === null
        ? []
        : Object.entries(value).flatMap(([key, part]) =>
            key === 'description' && typeof part === 'string' ? [part] : descriptions(part),
          )
    const described = siteRows.flatMap((row) =>
      row.endpoints.flatMap(({ arguments: args }) => Object.values(args)),
    )
    expect(described.filter((schema) => (schema.description ?? '') === '')).toEqual([])
    const copied = new Set(descriptions(theirs))
    expect(descriptions(ours).filter((text) => copied.has(text))).toEqual([])
  })
})
