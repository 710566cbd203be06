import { expect, test } from 'vitest'
import { cacheKey, foldedTargetKey } from '../../../../src/cache/cache-key.ts'
import { dropDiffering } from '../../../../src/gateway/parts/verifier.ts'
import { Redaction } from '../../../../src/http/redaction.ts'

test('a response that differs is dropped by all its tags, and logged without the one of its spellings', async () => {
  const target = '/Docs?b=2&a=1'
  const spellings = foldedTargetKey('open', target)
  const lines: unknown[] = []
  const purged: unknown[] = []
  await dropDiffering({
    cache: {
      purge: async ({ selectors }) => {
        purged.push(...selectors)
        return 1
      },
    },
    history: {
      recent: () => ({ upstreams: [], errors: [], refusals: [], invalidations: [], kept: [] }),
      purged: () => undefined,
    },
    redaction: new Redaction(),
    logger: { error: (facts: unknown) => void lines.push(facts) } as never,
  })({
    stored: {
      key: cacheKey({ service: 'open', target, partition: 'public' }),
      tags: ['open/a', spellings],
    } as never,
    service: 'open',
    target,
    ageMs: 1_000,
  })
  expect(purged).toContainEqual({ kind: 'tag', tag: spellings })
  expect(lines).toMatchObject([{ target, tags: ['open/a'] }])
})
