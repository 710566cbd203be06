import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Nginx, startNginx } from '../support/nginx.ts'
import { pause } from '../support/origin.ts'
import { type Recorder, startRecorder } from '../support/recorder.ts'
import { describeWith } from '../support/requirements.ts'
import { type Talk, talk } from '../support/talk.ts'
import { explained } from './raw-requests/explained.ts'
import { createSightings, notedAnswer, type Sighting, startPlainServer } from './raw-requests/sightings.ts'
import { variant } from './raw-requests/variants.ts'

// Whatever bytes come, a request that the gateway sends on is one that node:http and nginx see in the same bytes, with the
// same end. `npm run fuzz:raw` tries a million.

const count = Number(process.env['RAW_VARIANTS'] ?? 10_000)
const firstSeed = Number(process.env['RAW_SEED'] ?? 1)
/** So many connections to each of the three at a time. */
const atOnce = 160

describeWith('nginx', 'variants of requests', () => {
  const seen = { gateway: createSightings(), plain: createSightings(), nginx: createSightings() }
  let behindGateway: Recorder
  let behindNginx: Recorder
  let plain: Awaited<ReturnType<typeof startPlainServer>>
  let nginx: Nginx
  let gateway: TestGateway

  beforeAll(async () => {
    behindGateway = await startRecorder(notedAnswer(seen.gateway))
    behindNginx = await startRecorder(notedAnswer(seen.nginx))
    plain = await startPlainServer(seen.plain)
    nginx = await startNginx(behindNginx.origin)
    gateway = await startTestGateway({
      services: { open: { contract: 'open', mount: '/open', upstream: { targets: [behindGateway.origin] } } },
    })
  })
  afterAll(async () => {
    await gateway.close()
    await nginx.stop()
    await plain.close()
    await behindGateway.close()
    await behindNginx.close()
  })

  type Looked = {
    readonly said: Talk
    readonly gateway: readonly Sighting[]
    readonly plain: readonly Sighting[]
    readonly nginx: readonly Sighting[]
  }

  type Name = 'a' | 'b'

  /** Asks all three. Another process needs more patience than what runs in this one. */
  const ask = async (seed: number, name: Name, patienceMs: number): Promise<Talk> => {
    const bytes = Buffer.from(variant(seed, name), 'latin1')
    const within = (address: string, silenceMs: number) => talk(address, bytes, { enough: '', silenceMs })
    const [said] = await Promise.all([
      within(gateway.publicAddress, patienceMs),
      within(plain.address, patienceMs),
      within(nginx.address, 3 * patienceMs),
    ])
    return said as Talk
  }
  const taken = (seed: number, name: Name, said: Talk): Looked => ({
    said,
    gateway: seen.gateway.take(`i${seed}${name}`),
    plain: seen.plain.take(`i${seed}${name}`),
    nginx: seen.nginx.take(`i${seed}${name}`),
  })

  /** What is wrong with it; undefined when nothing is. */
  const disagreement = (looked: Looked): string | undefined => {
    if (looked.said.stray !== '') return `what came back is no answer: ${looked.said.stray.slice(0, 80)}`
    for (const who of ['plain', 'nginx'] as const) {
      const left = [...looked[who]]
      for (const sighting of looked.gateway) {
        const at = left.indexOf(sighting)
        if (at === -1) return `${who} did not see ${sighting.slice(0, 120)}`
        left.splice(at, 1)
      }
    }
    return undefined
  }

  /** Without haste: on a busy machine silence may only mean that somebody was not done yet. */
  const checkAlone = async (seed: number): Promise<string | undefined> => {
    const said = await ask(seed, 'b', 1_500)
    await pause(300)
    const looked = taken(seed, 'b', said)
    const wrong = disagreement(looked)
    if (wrong === undefined || explained(variant(seed), looked)) return undefined
    return `${seed}: ${wrong} in ${JSON.stringify(variant(seed)).slice(0, 700)}`
  }

  /** Seeds worth a closer look, and how many requests the gateway sent on. */
  const checkMany = async (seeds: readonly number[]): Promise<{ doubtful: number[]; forwarded: number }> => {
    const said = await Promise.all(seeds.map((seed) => ask(seed, 'a', 250)))
    await pause(150)
    const looked = seeds.map((seed, i) => [seed, taken(seed, 'a', said[i] as Talk)] as const)
    // What the gateway sent on later than that is looked at again.
    const late = [...seen.gateway.variants()].map((name) => Number.parseInt(name.slice(1), 10))
    for (const sightings of Object.values(seen)) sightings.clear()
    const doubtful = looked
      .filter(([seed, one]) => disagreement(one) !== undefined && !explained(variant(seed), one))
      .map(([seed]) => seed)
    return {
      doubtful: [...doubtful, ...late],
      forwarded: looked.reduce((sum, [, one]) => sum + one.gateway.length, 0),
    }
  }

  test(`${count} of them`, { timeout: 120_000 + count * 60 }, async () => {
    const wrong: string[] = []
    let forwarded = 0
    let tried = 0
    const began = performance.now()
    while (tried < count && wrong.length < 20) {
      const seeds = Array.from({ length: Math.min(atOnce, count - tried) }, (_, i) => firstSeed + tried + i)
      const found = await checkMany(seeds)
      tried += seeds.length
      forwarded += found.forwarded
      const closer = await Promise.all([...new Set(found.doubtful)].map(checkAlone))
      wrong.push(...closer.filter((one) => one !== undefined))
    }
    const seconds = Math.round((performance.now() - began) / 1000)
    process.stderr.write(`raw requests: ${tried} variants, ${forwarded} requests sent on, ${seconds} s\n`)
    expect(wrong).toEqual([])
    expect(behindGateway.faults).toEqual([])
    // Not a test that passes because everything is refused.
    expect(forwarded).toBeGreaterThan(count / 4)
    expect((await fetch(`${gateway.publicAddress}/open/i0-0`)).status).toBe(200)
  })
})
