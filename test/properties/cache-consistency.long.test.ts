import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Cache } from '../../src/cache/cache.ts'
import { times } from '../support/breadth.ts'
import { harness, readOf, response, safePolicy, settle, textOf } from '../unit/cache/cache-fixture.ts'

/** An upstream of a few resources, each a number that writes count up. The scheduler decides when anything happens. */
const createUpstream = (scheduler: fc.Scheduler) => {
  const versions = new Map<number, number>()
  const at = (resource: number): number => versions.get(resource) ?? 0
  const sometime = (label: string): Promise<void> => scheduler.schedule(Promise.resolve(), label)
  return {
    read: async (resource: number): Promise<number> => {
      await sometime(`request ${resource}`)
      const seen = at(resource)
      await sometime(`response ${resource}`)
      return seen
    },
    write: async (resource: number): Promise<number> => {
      await sometime(`write ${resource}`)
      const written = at(resource) + 1
      versions.set(resource, written)
      await sometime(`written ${resource}`)
      return written
    },
  }
}

type Upstream = ReturnType<typeof createUpstream>

const steps = fc.array(
  fc.record({
    act: fc.constantFrom('read', 'read', 'read', 'write', 'wait'),
    resource: fc.integer({ min: 0, max: 1 }),
    etag: fc.boolean(),
    leave: fc.integer({ min: 0, max: 7 }).map((n) => n === 0),
  }),
  { minLength: 2, maxLength: 25 },
)

type Step = typeof steps extends fc.Arbitrary<(infer S)[]> ? S : never

const tagOf = (resource: number): string => `item/${resource}`

const policy = safePolicy({ ttlMs: 1000, staleWhileRevalidateMs: 1000, staleIfErrorMs: 1000 })

const readOne = async (cache: Cache, upstream: Upstream, floor: number, step: Step): Promise<void> => {
  const { resource, etag } = step
  const reader = new AbortController()
  // One resource is known from the request, the other only from its response.
  const read = readOf({
    target: `/${resource}`,
    tags: ({ content }) => (resource === 0 || content.length > 0 ? [tagOf(resource)] : []),
    policy,
    signal: reader.signal,
  })
  const reply = Promise.resolve(
    cache.response(read, async ({ headers }) => {
      const version = await upstream.read(resource)
      const tag = `"v${version}"`
      if (headers['if-none-match'] === tag) {
        return { status: 304, headers: ['ETag', tag], content: undefined }
      }
      return response(String(version), etag ? ['ETag', tag] : [])
    }),
  )
  if (step.leave) reader.abort()
  const got = await reply.catch(() => undefined)
  if (got !== undefined) expect(Number(await textOf(got))).toBeGreaterThanOrEqual(floor)
}

test('after an acknowledged write no read returns older data, in any order of events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), steps, async (scheduler, sequence) => {
      const { cache, clock } = harness()
      const upstream = createUpstream(scheduler)
      /** What a reader who begins now must at least see: the last write that was answered. */
      const responded = new Map<number, number>()
      const writeOne = async (resource: number): Promise<void> => {
        const version = await upstream.write(resource)
        cache.invalidate([tagOf(resource)])
        responded.set(resource, Math.max(version, responded.get(resource) ?? 0))
      }
      const begin = async (step: Step): Promise<void> => {
        if (step.act === 'read') await readOne(cache, upstream, responded.get(step.resource) ?? 0, step)
        else if (step.act === 'write') await writeOne(step.resource)
        else clock.advance(700)
      }
      const begun: Promise<void>[] = []
      const builders = sequence.map((step, i) => ({
        label: `start ${i}`,
        builder: async () => {
          begun.push(begin(step))
        },
      }))
      scheduler.scheduleSequence(builders)
      // Rounds that a waiter has to go again, and fetches in the background, come up only on the way.
      for (let i = 0; i < 200; i += 1) {
        await settle()
        if (scheduler.count() === 0) break
        await scheduler.waitOne()
      }
      await Promise.all(begun)
      expect(begun).toHaveLength(sequence.length)
      cache.close()
    }),
    { numRuns: times(200, 600) },
  )
})
