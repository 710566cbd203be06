import { Readable } from 'node:stream'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import { network } from './redis/network.ts'
import { type PurgeRequest, type PurgeResponse, receivers } from './replaced/undici.ts'
import { world } from './world.ts'

/** Time between a change and its purge: responses that were on their way have arrived (docs/decisions/0023-downstream.md). */
export const settleMs = 50

/** What it has received of a response; `content` comes later than the head. */
type FrontEntry = {
  readonly tags: ReadonlySet<string>
  readonly freshUntil: number
  content: string | undefined
}

const tagsIn = ({ headers }: GatewayResponse): ReadonlySet<string> =>
  new Set((headerValue(headers, 'xkey') ?? '').split(' ').filter((tag) => tag !== ''))

const lifetimeMs = ({ headers }: GatewayResponse): number => {
  const seconds = /^max-age=(\d+)$/.exec(headerValue(headers, 'surrogate-control') ?? '')?.[1] ?? '0'
  return (Number(seconds) - Number(headerValue(headers, 'age') ?? 0)) * 1000
}

/**
 * A cache in front of all gateways, as Varnish with xkey is one: it stores what the headers allow, and drops what a purge names. What is
 * on its way when it is purged is stored when it arrives.
 */
export const createFront = () => {
  const random = world.randomFor('front')
  const entries = new Map<string, FrontEntry>()
  let refusesUntil = Number.NEGATIVE_INFINITY
  let losesUntil = Number.NEGATIVE_INFINITY
  let downUntil = Number.NEGATIVE_INFINITY

  const drop = (tags: ReadonlySet<string>): void => {
    for (const [target, entry] of entries) {
      if ([...entry.tags].some((tag) => tags.has(tag))) entries.delete(target)
    }
  }
  const answer = (status: number): PurgeResponse => ({
    statusCode: status,
    headers: {},
    body: Readable.from([Buffer.from('{}')], { objectMode: false }),
  })
  /** Calls back in the process of the gateway; never, when the response is lost. */
  receivers.purge = ({ headers, process }: PurgeRequest, responded, failed): void => {
    const back = (kind: string, run: () => void): void => {
      world.schedule(world.now + network.delay(random), process, kind, run)
    }
    const carryOut = (): void => {
      if (world.isTraced) world.note(`front: purged of ${headers['xkey-purge']}`)
      drop(new Set((headers['xkey-purge'] ?? '').split(' ')))
      if (world.now < losesUntil && random() < 0.5) return
      back('a purge is confirmed', () => responded(answer(200)))
    }
    world.schedule(world.now + network.delay(random), undefined, 'a purge arrives', () => {
      if (world.now < downUntil) back('a purge fails', () => failed(new Error('connect ECONNREFUSED')))
      else if (world.now < refusesUntil) back('a purge is refused', () => responded(answer(503)))
      else carryOut()
    })
  }

  return {
    /** What it answers with; undefined: it asks a gateway. */
    stored: (target: string): string | undefined => {
      const entry = entries.get(target)
      return entry === undefined || world.now >= entry.freshUntil ? undefined : entry.content
    },
    /** The head of a response is on its way to it; `stored` is called when it has arrived and may be stored. */
    receive: (target: string, response: GatewayResponse): FrontEntry => {
      const entry: FrontEntry = {
        tags: tagsIn(response),
        freshUntil: world.now + lifetimeMs(response),
        content: undefined,
      }
      const delayMs = random() < 0.3 ? random() * settleMs : network.delay(random)
      const arrivesAt = world.now + Math.min(delayMs, settleMs * 0.9)
      world.schedule(arrivesAt, undefined, 'a response arrives at the front', () => {
        if (response.status === 200 && entry.freshUntil > world.now && world.now >= downUntil)
          entries.set(target, entry)
      })
      return entry
    },
    refuse: (ms: number): void => {
      refusesUntil = world.now + ms
    },
    loseResponses: (ms: number): void => {
      losesUntil = world.now + ms
    },
    /** It stores nothing of what it had. */
    restart: (ms: number): void => {
      downUntil = world.now + ms
      entries.clear()
    },
    get isDown() {
      return world.now < downUntil
    },
  }
}

export type Front = ReturnType<typeof createFront>
