import { Readable } from 'node:stream'
import type { Purge } from '../../src/cache/invalidation.ts'
import { EndSignal } from '../../src/http/end-signal.ts'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import type { SimulatedCluster, Slot } from './cluster.ts'
import type { History } from './history.ts'
import type { Plan, PurgeKind } from './plan.ts'
import {
  itemPath,
  items,
  listPath,
  type Shown,
  type SimulatedUpstream,
  upstreamTotalMs,
  type WriteFate,
} from './upstream.ts'
import { type Process, world } from './world.ts'

/** The versions that no read may fall behind, by what was read. */
const createFloors = (history: History) => {
  const floors = new Map<string, number>()
  const nameOf = (path: string, item: number): string => `${path} ${item}`
  return {
    raise: (path: string, item: number, version: number, why: string): void => {
      if (version > 0) history.acknowledged(why, path, item, version)
      const name = nameOf(path, item)
      if (version <= (floors.get(name) ?? 0)) return
      floors.set(name, version)
      if (world.isTraced) world.note(`${path}: item ${item} is ${version} or newer from here on (${why})`)
    },
    at: (path: string): readonly number[] => items.map((item) => floors.get(nameOf(path, item)) ?? 0),
  }
}

/** Calls `ended` with the content of a response once it is whole; with undefined when it breaks off. `piece`: as it comes. */
const whenWhole = (
  { content }: GatewayResponse,
  ended: (content: string | undefined) => void,
  piece: (text: string) => void = () => {},
): void => {
  if (!(content instanceof Readable)) {
    ended(content === undefined ? '' : content.toString())
    return
  }
  let text = ''
  let isOver = false
  const over = (whole: string | undefined): void => {
    if (isOver) return
    isOver = true
    ended(whole)
  }
  content.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    piece(chunk.toString())
  })
  content.on('end', () => over(text))
  content.on('error', () => over(undefined))
  content.on('close', () => over(undefined))
}

/** Its first bytes: the rest never comes. */
const halfContent = (): Readable => {
  const content = new Readable({ read: () => undefined })
  content.on('error', () => undefined)
  content.push('first bytes')
  return content
}

const selectorOf = (what: PurgeKind, path: string): Purge['selector'] => {
  switch (what) {
    case 'all':
      return { kind: 'all' }
    case 'prefix':
      return { kind: 'prefix', service: 'site', prefixes: ['/'] }
    case 'target':
      return { kind: 'target', service: 'site', target: path }
  }
}

type ClientParts = {
  readonly plan: Plan
  readonly upstream: SimulatedUpstream
  readonly slots: SimulatedCluster['slots']
  readonly history: History
  /** The last time at which Redis lost data. */
  readonly lostAt: () => number
}

/** Clients read and write, and compare what they read with what was acknowledged before they began. */
export const createClients = ({ plan, upstream, slots, history, lostAt }: ClientParts) => {
  const { forgetAfterMs, leaseMs } = plan.settings
  const floors = createFloors(history)
  const random = world.randomFor('clients')
  const counts = { reads: 0, hits: 0, writes: 0 }
  let violation: string | undefined

  const judge = (path: string, text: string, before: readonly number[], what: string): void => {
    const shown = JSON.parse(text) as Shown
    for (const [i, item] of items.entries()) {
      const version = shown[item]
      if (version === undefined) continue
      world.seen(version)
      const floor = before[i] ?? 0
      if (version < floor)
        violation ??= `${path}: item ${item} has version ${version}, but ${floor} was acknowledged before; ${what}`
    }
  }

  /** The process that would get a request now. */
  const processOf = (slot: Slot): Process | undefined =>
    slot.member === undefined || slot.isLeaving ? undefined : slot.process

  type Sent = { readonly process: Process; readonly kind: string; readonly afterMs: number }

  /** Runs in the process, unless it has ended meanwhile. */
  const arrive = (
    slot: Slot,
    { process, kind, afterMs }: Sent,
    run: (member: NonNullable<Slot['member']>) => void,
  ): void => {
    world.schedule(world.now + afterMs, process, kind, () => {
      if (slot.process === process && slot.member !== undefined) run(slot.member)
    })
  }

  const read = (slot: Slot, path: string, leavesAfterMs?: number): void => {
    const process = processOf(slot)
    if (process === undefined) return
    counts.reads += 1
    const before = floors.at(path)
    const from = history.moment()
    const begun = `begun at ${world.now.toFixed(2)}`
    slot.open += 1
    const judged = (response: GatewayResponse, text: string | undefined): void => {
      slot.open -= 1
      if (response.status !== 200 || text === undefined) return
      const status = headerValue(response.headers, 'cache-status') ?? ''
      if (status.includes('hit')) counts.hits += 1
      if (world.isTraced) world.note(`${process.name}: ${path} ${text} ${status} ${begun}`)
      history.read(process.name, path, JSON.parse(text) as Shown, from)
      judge(path, text, before, `read at ${process.name}, ${begun}, ${status}`)
    }
    arrive(slot, { process, kind: `GET ${path}`, afterMs: random() * 0.3 }, (member) => {
      const signal = new EndSignal()
      if (leavesAfterMs !== undefined)
        world.schedule(world.now + leavesAfterMs, process, 'a client leaves', () =>
          signal.end(new Error('the client has left')),
        )
      void member
        .read(path, signal as unknown as AbortSignal)
        .then((response) => whenWhole(response, (text) => judged(response, text)))
    })
  }
  /** Reads right after a write are the ones that may be too old. */
  const probe = (item: number): void => {
    for (const slot of slots) {
      for (const path of [itemPath(item), listPath]) {
        read(slot, path)
        if (random() < 0.5)
          world.schedule(world.now + random() * 30, undefined, 'a client reads', () => read(slot, path))
      }
    }
  }

  /** When even the outcome of a write that nobody knows has reached all members (docs/decisions/0007, 6 and 8). */
  const settledMs = 2 * upstreamTotalMs + forgetAfterMs + 4 * leaseMs + 1_000

  /** A write that was not acknowledged is not covered if its member, or its contact, is lost together with data of Redis. */
  const isCovered = (slot: Slot, process: Process, sentAt: number, carriedOutAt: number): boolean => {
    // It could not be announced, if the ledger was not reached again before.
    if (!process.isAlive && slot.forgottenAt > sentAt - settledMs) return false
    const isLost = !process.isAlive || slot.disturbedAt > sentAt - settledMs
    if (lostAt() > sentAt - settledMs) return !isLost
    return !isLost || carriedOutAt - sentAt < upstreamTotalMs * 0.8
  }

  const write = (slot: Slot, item: number, fate: WriteFate): void => {
    const process = processOf(slot)
    if (process === undefined) return
    counts.writes += 1
    const name = `w${counts.writes}`
    const path = itemPath(item)
    const expected = upstream.expect(name, item, fate)
    const sentAt = world.now
    slot.open += 1
    world.schedule(world.now + settledMs, undefined, 'a write is settled', () => {
      if (expected.version > 0 && isCovered(slot, process, sentAt, expected.carriedOutAt)) {
        floors.raise(path, item, expected.version, `settled ${name}`)
        probe(item)
      }
    })
    const responded = (status: number, text: string | undefined): void => {
      slot.open -= 1
      if (text === undefined) return
      const version = expected.givenUp ?? expected.version
      const by = `${name} by ${process.name}`
      if (world.isTraced) world.note(`${by} is answered with ${status}`)
      const acknowledge = (): void => {
        floors.raise(path, item, version, by)
        // Of an error the open service knows no groups.
        if (status === 200) floors.raise(listPath, item, version, by)
        probe(item)
      }
      if (random() < 0.5) acknowledge()
      else world.schedule(world.now + random(), undefined, 'a response arrives', acknowledge)
    }
    /** A piece acknowledges what was changed before it. */
    const told = (piece: string): void => {
      const saved = (JSON.parse(piece) as Partial<Shown>)['saved']
      if (saved === undefined) return
      const by = `a piece of ${name} by ${process.name}`
      for (const shown of [path, listPath]) floors.raise(shown, item, saved, by)
      probe(item)
    }
    const kind = `PUT ${path} (${fate}, ${name})`
    arrive(slot, { process, kind, afterMs: random() * 0.3 }, (member) => {
      void member
        .write(path, name, fate === 'partial' ? halfContent() : undefined)
        .then((response) => whenWhole(response, (text) => responded(response.status, text), told))
    })
  }

  /** Somebody changes an item behind the gateways, and has an operator purge it. */
  const purge = (slot: Slot, item: number, what: PurgeKind): void => {
    const process = processOf(slot)
    if (process === undefined) return
    const version = upstream.change(item)
    const path = itemPath(item)
    arrive(slot, { process, kind: `purge ${what}`, afterMs: 0 }, (member) => {
      void member.purge(selectorOf(what, path)).then((outcome) => {
        if (outcome === 'unacknowledged') return
        const by = `purged by ${process.name}`
        floors.raise(path, item, version, by)
        if (what !== 'target') floors.raise(listPath, item, version, by)
        probe(item)
      })
    })
  }

  return {
    counts,
    read,
    write,
    purge,
    probe,
    /** The first read that was older than an acknowledged write. */
    violation: (): string | undefined => violation,
  }
}
