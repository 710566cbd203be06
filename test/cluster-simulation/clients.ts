import { Readable } from 'node:stream'
import type { Purge } from '../../src/cache/invalidation.ts'
import { EndSignal } from '../../src/http/end-signal.ts'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import { oneOf } from '../support/random.ts'
import type { SimulatedCluster, Slot } from './cluster.ts'
import type { Front } from './front.ts'
import { createFrontClients } from './front-clients.ts'
import type { History } from './history.ts'
import { type Interface, type Resource, resourcesWith, targetOf } from './interfaces.ts'
import type { MemberSettings } from './member.ts'
import { arrive, processOf } from './members-in-slots.ts'
import { createOracle } from './oracle.ts'
import type { Plan, PurgeKind } from './plan.ts'
import type { SimulatedUpstream, WriteFate } from './upstream.ts'
import { whenWhole } from './when-whole.ts'
import { type Process, world } from './world.ts'

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

/** When even the outcome of a write that nobody knows has reached all members (docs/decisions/0007, 6 and 8). */
export const settledMs = ({ totalMs, forgetAfterMs, leaseMs }: MemberSettings): number =>
  2 * totalMs + forgetAfterMs + 4 * leaseMs + 1_000

/** Two turns of sending once more, and the longest fault of a plan. */
export const settledInFrontMs = 14_000

type ClientParts = {
  readonly plan: Plan
  readonly service: Interface
  readonly upstream: SimulatedUpstream
  readonly front: Front
  readonly slots: SimulatedCluster['slots']
  readonly history: History
  /** The last time at which Redis lost data, and at which it was away. */
  readonly lostAt: () => number
  readonly awayAt: () => number
}

/** Clients read and write, and compare what they read with what was acknowledged before they began. */
export const createClients = ({
  plan,
  service,
  upstream,
  front,
  slots,
  history,
  lostAt,
  awayAt,
}: ClientParts) => {
  const { forgetAfterMs, totalMs } = plan.settings
  const settled = settledMs(plan.settings)
  const random = world.randomFor('clients')
  const oracle = createOracle(plan, service, history)
  const inFront = createFrontClients({ service, front, oracle, history, random })
  const counts = { reads: 0, hits: 0, writes: 0 }

  const read = (slot: Slot, resource: Resource, leavesAfterMs?: number): void => {
    const process = processOf(slot)
    if (process === undefined) return
    counts.reads += 1
    const path = resource.name
    const target = targetOf(resource, random)
    const before = oracle.floorsOf(path)
    const from = history.moment()
    const begun = `begun at ${world.now.toFixed(2)}`
    slot.open += 1
    const judged = (response: GatewayResponse, text: string | undefined): void => {
      slot.open -= 1
      if (response.status !== 200 || text === undefined) return
      const status = headerValue(response.headers, 'cache-status') ?? ''
      if (status.includes('hit')) counts.hits += 1
      if (world.isTraced) world.note(`${process.name}: ${path} ${text} ${status} ${begun}`)
      history.read(process.name, path, service.shown(text), from)
      oracle.judge(path, text, before, `read at ${process.name}, ${begun}, ${status}`)
    }
    arrive(slot, { process, kind: `GET ${target}`, afterMs: random() * 0.3 }, (member) => {
      const signal = new EndSignal()
      if (leavesAfterMs !== undefined)
        world.schedule(world.now + leavesAfterMs, process, 'a client leaves', () =>
          signal.end(new Error('the client has left')),
        )
      void member
        .read(target, signal as unknown as AbortSignal)
        .then((response) => whenWhole(process, response, (text) => judged(response, text)))
    })
  }
  /** Reads right after a write are the ones that may be too old. */
  const probe = (item: number): void => {
    for (const slot of slots) {
      for (const resource of resourcesWith(service, item)) {
        read(slot, resource)
        if (plan.settings.hasFront) inFront.read(slot, resource)
        if (random() < 0.5)
          world.schedule(world.now + random() * 30, undefined, 'a client reads', () => read(slot, resource))
      }
    }
  }

  /** A write that was not acknowledged is not covered if its member, or its contact, is lost together with data of Redis. */
  const isCovered = (slot: Slot, process: Process, sentAt: number, carriedOutAt: number): boolean => {
    // It could not be announced, if the ledger was not reached again before.
    if (!process.isAlive && slot.forgottenAt > sentAt - settled) return false
    const isLost = !process.isAlive || slot.disturbedAt > sentAt - settled
    if (lostAt() > sentAt - settled) return !isLost
    // One that was sent unannounced counts until its silent member is forgotten.
    const wasCut = Math.max(slot.cutAt, awayAt()) > sentAt - settled
    const coveredMs = wasCut ? Math.min(totalMs, forgetAfterMs) : totalMs
    return !isLost || carriedOutAt - sentAt < coveredMs * 0.8
  }

  /** What its process could not purge, the others purge twice within this time; a receiver that is behind gets it later. */
  const settledInFront = (known: readonly Resource[], item: number, version: number, name: string): void => {
    world.schedule(world.now + settledInFrontMs, undefined, 'a write is settled in front', () => {
      oracle.acknowledge(known, { item, version, why: `settled ${name}`, reach: 'front' })
      for (const slot of slots) for (const resource of known) inFront.read(slot, resource)
    })
  }

  const write = (slot: Slot, item: number, fate: WriteFate): void => {
    const process = processOf(slot)
    if (process === undefined) return
    counts.writes += 1
    const name = `w${counts.writes}`
    const shown = resourcesWith(service, item)
    const [own] = shown
    const path = own?.name ?? ''
    const expected = upstream.expect(name, item, fate)
    const sentAt = world.now
    slot.open += 1
    world.schedule(world.now + settled, undefined, 'a write is settled', () => {
      if (expected.version > 0 && isCovered(slot, process, sentAt, expected.carriedOutAt)) {
        const known = service.unknownReachesLists ? shown : shown.slice(0, 1)
        const { version } = expected
        oracle.acknowledge(known, { item, version, why: `settled ${name}`, reach: 'gateways' })
        probe(item)
        if (plan.settings.hasFront) settledInFront(known, item, version, name)
      }
    })
    const responded = (status: number, text: string | undefined): void => {
      slot.open -= 1
      if (text === undefined) return
      const version = expected.givenUp ?? expected.version
      const by = `${name} by ${process.name}`
      if (world.isTraced) world.note(`${by} is answered with ${status}`)
      const arrived = (): void => {
        // Of an error the open service knows no groups; a 504 of the gateway itself says that the cache in front has not confirmed.
        const reach = status === 200 ? 'front' : 'gateways'
        oracle.acknowledge(status === 200 ? shown : shown.slice(0, 1), { item, version, why: by, reach })
        probe(item)
      }
      if (random() < 0.5) arrived()
      else world.schedule(world.now + random(), undefined, 'a response arrives', arrived)
    }
    /** A piece acknowledges what was changed before it. */
    const told = (piece: string): void => {
      const saved = Number([...piece.matchAll(/"saved":(\d+)/g)].at(-1)?.[1] ?? 0)
      if (saved === 0) return
      const by = `a piece of ${name} by ${process.name}`
      oracle.acknowledge(shown, { item, version: saved, why: by, reach: 'front' })
      probe(item)
    }
    const target = own === undefined ? path : (own.targets[0] ?? '')
    const kind = `write ${target} (${fate}, ${name})`
    arrive(slot, { process, kind, afterMs: random() * 0.3 }, (member) => {
      void member
        .write(target, { ...service.write, name, half: fate === 'partial' ? halfContent() : undefined })
        .then((response) => whenWhole(process, response, (text) => responded(response.status, text), told))
    })
  }

  /** Somebody changes an item behind the gateways, and has an operator purge it. */
  const purge = (slot: Slot, item: number, what: PurgeKind): void => {
    const process = processOf(slot)
    if (process === undefined) return
    const version = upstream.change(item)
    const shown = resourcesWith(service, item)
    const path = service.item(item).targets[0] ?? ''
    arrive(slot, { process, kind: `purge ${what}`, afterMs: 0 }, (member) => {
      void member.purge(selectorOf(what, path)).then((outcome) => {
        if (outcome === 'unacknowledged') return
        const by = `purged by ${process.name}`
        const reached = what === 'target' ? shown.slice(0, 1) : shown
        oracle.acknowledge(reached, { item, version, why: by, reach: 'front' })
        probe(item)
      })
    })
  }

  return {
    /** Of all reads, those in front included. */
    counts: () => ({
      reads: counts.reads + inFront.counts.reads,
      hits: counts.hits,
      frontHits: inFront.counts.hits,
      writes: counts.writes,
    }),
    /** 0 stands for a list. */
    resourceOf: (item: number): Resource => (item === 0 ? oneOf(random, service.lists) : service.item(item)),
    read,
    readFront: inFront.read,
    write,
    purge,
    probe,
    violation: oracle.violation,
  }
}
