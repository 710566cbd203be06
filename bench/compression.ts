import { setTimeout as sleep } from 'node:timers/promises'
import { createCache } from '../src/cache/cache.ts'
import { cacheKey } from '../src/cache/cache-key.ts'
import type { CacheRead } from '../src/cache/cache-read.ts'
import { systemClock } from '../src/clock.ts'
import { unlimited } from '../src/http/bounds.ts'
import type { GatewayResponse } from '../src/http/message.ts'

/** What a hit costs the cache: compression off, on and nothing coded yet, on and coded. Rounds are interleaved. */
const hits = 200_000
const rounds = 9

const text = JSON.stringify(Array.from({ length: 100 }, (_, id) => ({ id, title: `Plant of the day ${id}` })))
const answer: GatewayResponse = {
  status: 200,
  fields: ['Content-Type', 'application/json', 'Date', new Date().toUTCString()],
  content: Buffer.from(text),
}

const readOf = (acceptEncoding: string | undefined): CacheRead => ({
  service: 'site',
  key: cacheKey({ service: 'site', target: '/a', dialect: '', partition: 'public' }),
  partition: 'public',
  method: 'GET',
  fields: acceptEncoding === undefined ? {} : { 'accept-encoding': acceptEncoding },
  sentField: () => undefined,
  policy: {
    profile: 'safe',
    rule: {
      ttlMs: 3_600_000,
      staleWhileRevalidateMs: 0,
      staleIfErrorMs: 0,
      override: false,
      negativeTtlMs: 0,
      scope: 'public',
    },
  },
  tags: () => ['t'],
  signal: new AbortController().signal,
})

const createSubject = async (codings: readonly ('br' | 'gzip')[], asked: string | undefined) => {
  const cache = createCache({
    budget: () => unlimited,
    maxBytes: 1e8,
    maxEntryBytes: 1e7,
    admission: 'always',
    compression: { codings, minBytes: 1024 },
    clock: systemClock,
    report: () => {},
  })
  const forward = async (): Promise<GatewayResponse> => answer
  await cache.answer(readOf(undefined), forward)
  if (asked !== undefined) {
    await cache.answer(readOf(asked), forward)
    await sleep(300)
  }
  return { cache, forward }
}

const nanosecondsPerHit = (
  { cache, forward }: Awaited<ReturnType<typeof createSubject>>,
  read: CacheRead,
): number => {
  const before = process.cpuUsage()
  for (let i = 0; i < hits; i += 1) void cache.answer(read, forward)
  const used = process.cpuUsage(before)
  return ((used.user + used.system) * 1000) / hits
}

const identity = readOf(undefined)
const coding = readOf('gzip')
const subjects = [
  ['identity, compression off', await createSubject([], undefined), identity],
  ['identity, on, nothing coded yet', await createSubject(['br', 'gzip'], undefined), identity],
  ['identity, on, coded', await createSubject(['br', 'gzip'], 'gzip'), identity],
  ['gzip, on, coded', await createSubject(['br', 'gzip'], 'gzip'), coding],
] as const

const figures = new Map<string, number[]>(subjects.map(([name]) => [name, []]))
for (let round = 0; round <= rounds; round += 1) {
  for (const [name, subject, read] of subjects) {
    const cost = nanosecondsPerHit(subject, read)
    // The first one warms up.
    if (round > 0) figures.get(name)?.push(cost)
  }
}
for (const [name, costs] of figures) {
  const sorted = [...costs].sort((a, b) => a - b)
  const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0)
  console.log(`${name.padEnd(34)} ${at(0.5)} ns of processor time a hit (${at(0)} to ${at(1)})`)
}
