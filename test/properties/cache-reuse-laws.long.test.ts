import fc from 'fast-check'
import { expect, test } from 'vitest'
import { targetKey } from '../../src/cache/cache-key.ts'
import { correctedInitialAgeMs } from '../../src/cache/policy/freshness.ts'
import { currentAgeMs } from '../../src/cache/policy/reuse.ts'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import { harness, readOf, response, safePolicy, settle, textOf } from '../unit/cache/cache-fixture.ts'

const moment = fc.record({ now: fc.integer(), monotonic: fc.integer() })

const ageLines = fc.array(
  fc.constantFrom(
    ['Age', '5'],
    ['Age', '-5'],
    ['Age', '9'.repeat(30)],
    ['Date', 'Thu, 01 Jan 1970 00:00:00 GMT'],
    ['Date', 'x'],
  ),
  { maxLength: 3 },
)

test('no age is negative, and no clock makes a response younger than at its arrival', () => {
  fc.assert(
    fc.property(ageLines, moment, moment, moment, fc.boolean(), (lines, requested, received, at, trust) => {
      const head = { status: 200, headers: lines.flat() }
      const initial = correctedInitialAgeMs(head, { requested, received }, trust)
      expect(initial).toBeGreaterThanOrEqual(0)
      expect(currentAgeMs({ initialAgeMs: initial, received }, at)).toBeGreaterThanOrEqual(initial)
    }),
  )
})

const policies = fc.record({
  ttlMs: fc.integer({ min: 0, max: 20_000 }),
  staleWhileRevalidateMs: fc.integer({ min: 0, max: 20_000 }),
  staleIfErrorMs: fc.integer({ min: 0, max: 20_000 }),
})

const waits = fc.array(
  fc.record({
    waitMs: fc.integer({ min: 0, max: 15_000 }),
    up: fc.boolean(),
    wallJumpMs: fc.constantFrom(0, 0, 0, -3_600_000, 3_600_000),
  }),
  { minLength: 1, maxLength: 20 },
)

test('nothing is reused beyond the time that the policy permits, whatever the clock does', async () => {
  await fc.assert(
    fc.asyncProperty(policies, waits, async (windows, sequence) => {
      const { cache, clock } = harness()
      const policy = safePolicy(windows)
      const madeAt: number[] = []
      for (const { waitMs, up, wallJumpMs } of sequence) {
        // What was begun in the background before is over: else its failure would count as this reader's.
        await settle()
        clock.advance(waitMs)
        clock.setWall(clock.now() + wallJumpMs)
        const forward = async () => {
          if (!up) throw new Error('down')
          madeAt.push(clock.monotonic())
          return response(String(madeAt.length - 1))
        }
        const asked = Promise.resolve(cache.response(readOf({ policy }), forward))
        const reply = await asked.catch(() => undefined)
        if (reply === undefined) continue
        const ageMs = clock.monotonic() - (madeAt[Number(await textOf(reply))] ?? 0)
        const staleMs = Math.max(windows.staleWhileRevalidateMs, up ? 0 : windows.staleIfErrorMs)
        expect(ageMs === 0 || ageMs < windows.ttlMs + staleMs).toBe(true)
        expect(Number(headerValue(reply.headers, 'age') ?? 0) * 1000).toBeGreaterThan(ageMs - 1000)
      }
      cache.close()
    }),
    { numRuns: 200 },
  )
})

const commands = fc.array(
  fc.record({
    target: fc.integer({ min: 0, max: 30 }),
    tags: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 3 }),
    bytes: fc.integer({ min: 0, max: 4000 }),
    language: fc.constantFrom('a', 'b', 'c'),
    action: fc.constantFrom('read', 'read', 'read', 'read', 'invalidate', 'target', 'purge'),
  }),
  { maxLength: 60 },
)

type Command = typeof commands extends fc.Arbitrary<(infer C)[]> ? C : never

const run = async (cache: ReturnType<typeof harness>['cache'], command: Command): Promise<void> => {
  const target = `/${command.target}`
  const tags = command.tags.map((tag) => `t${tag}`)
  switch (command.action) {
    case 'invalidate':
      cache.invalidate(tags)
      return
    case 'target':
      cache.invalidate([targetKey('site', target)])
      return
    case 'purge':
      cache.purge({
        selector: { kind: 'prefix', service: 'site', prefixes: [target] },
        mode: 'soft',
        dryRun: false,
      })
      return
    default: {
      const read = readOf({ target, tags, headers: { 'accept-language': command.language } })
      await cache.response(read, async () => response('x'.repeat(command.bytes), ['Vary', 'Accept-Language']))
    }
  }
}

test('bytes stay below the bound, and the tag index is empty when nothing is stored', async () => {
  await fc.assert(
    fc.asyncProperty(commands, async (sequence) => {
      const { cache } = harness({ maxBytes: 20_000, maxEntryBytes: 3000 })
      for (const command of sequence) {
        await run(cache, command)
        expect(cache.stats().bytes).toBeLessThanOrEqual(20_000)
      }
      cache.purge({ selector: { kind: 'all' }, mode: 'hard', dryRun: false })
      expect(cache.stats()).toEqual({ entries: 0, bytes: 0, tags: 0 })
    }),
    { numRuns: 100 },
  )
})
