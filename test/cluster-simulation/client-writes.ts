import { Readable } from 'node:stream'
import type { Random } from '../support/random.ts'
import type { SimulatedCluster, Slot } from './cluster.ts'
import type { FrontClients } from './front-clients.ts'
import type { MemberSettings } from './member-settings.ts'
import { arrive, processOf } from './members-in-slots.ts'
import type { Oracle } from './oracle.ts'
import type { Plan } from './plan.ts'
import type { Interface, Resource } from './services/interface.ts'
import { resourcesWith } from './services/services.ts'
import type { SimulatedUpstream, Write, WriteSpec } from './upstream.ts'
import { whenWhole } from './when-whole.ts'
import { type Process, world } from './world.ts'

/** Its first bytes: the rest never comes. */
const halfContent = (): Readable => {
  const content = new Readable({ read: () => undefined })
  content.on('error', () => undefined)
  content.push('first bytes')
  return content
}

/** When even the outcome of a write that nobody knows has reached all members (docs/decisions/0007, 6 and 8). */
export const settledMs = ({ totalMs, forgetAfterMs, leaseMs }: MemberSettings): number =>
  2 * totalMs + forgetAfterMs + 4 * leaseMs + 1_000

/** Two turns of sending once more, and the longest fault of a plan. */
export const settledInFrontMs = 14_000

export type WriterParts = {
  readonly plan: Plan
  readonly service: Interface
  readonly upstream: SimulatedUpstream
  readonly slots: SimulatedCluster['slots']
  readonly oracle: Oracle
  readonly inFront: FrontClients
  readonly random: Random
  /** Reads everything that shows the item, everywhere. */
  readonly probe: (item: number) => void
  /** The last time at which Redis lost data, and at which it was away. */
  readonly lostAt: () => number
  readonly awayAt: () => number
}

export const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** A write that is sent, alone or in a batch. */
export type SentWrite = {
  readonly name: string
  readonly expected: Write
  /** Its client has the whole response. */
  readonly responded: (status: number) => void
  /** A piece of it acknowledges what was changed before it. */
  readonly told: (piece: string) => void
}

/** Clients that write, and what their writes acknowledge. */
export const createWriters = (parts: WriterParts) => {
  const { plan, service, upstream, slots, oracle, inFront, random, probe, lostAt, awayAt } = parts
  const { forgetAfterMs, totalMs } = plan.settings
  const settled = settledMs(plan.settings)
  const counts = { writes: 0 }

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

  const begin = (slot: Slot, process: Process, spec: WriteSpec): SentWrite => {
    counts.writes += 1
    const name = `w${counts.writes}`
    const { item } = spec
    const shown = resourcesWith(service, item)
    const expected = upstream.expect(name, spec)
    const sentAt = world.now
    world.schedule(world.now + settled, undefined, 'a write is settled', () => {
      if (expected.version > 0 && isCovered(slot, process, sentAt, expected.carriedOutAt)) {
        const known = service.unknownReachesLists ? shown : shown.slice(0, 1)
        const { version } = expected
        oracle.acknowledge(known, { item, version, why: `settled ${name}`, reach: 'gateways' })
        probe(item)
        if (plan.settings.hasFront) settledInFront(known, item, version, name)
      }
    })
    return {
      name,
      expected,
      responded: (status) => {
        const version = expected.givenUp ?? expected.version
        const by = `${name} by ${process.name}`
        if (world.isTraced) world.note(`${by} is answered with ${status}`)
        const arrived = (): void => {
          // Of an error the open service knows no groups; a 504 of the gateway itself says that the cache in front has not confirmed.
          const isDone = isSuccess(status)
          const reach = isDone ? 'front' : 'gateways'
          oracle.acknowledge(isDone ? shown : shown.slice(0, 1), { item, version, why: by, reach })
          probe(item)
        }
        if (random() < 0.5) arrived()
        else world.schedule(world.now + random(), undefined, 'a response arrives', arrived)
      },
      told: (piece) => {
        const saved = Number([...piece.matchAll(/"saved":(\d+)/g)].at(-1)?.[1] ?? 0)
        if (saved === 0) return
        const by = `a piece of ${name} by ${process.name}`
        oracle.acknowledge(shown, { item, version: saved, why: by, reach: 'front' })
        probe(item)
      },
    }
  }

  return {
    counts,
    begin,
    write: (slot: Slot, spec: WriteSpec): void => {
      const process = processOf(slot)
      if (process === undefined) return
      const sent = begin(slot, process, spec)
      const { item, verb, way, fate } = spec
      const request = service.write(item, verb, way)
      const kind = `${verb} ${request.target} (${fate}, ${sent.name})`
      const half = fate === 'partial' ? halfContent() : undefined
      const length = half === undefined ? {} : { 'content-length': '65536' }
      const headers = { ...request.headers, 'x-write': sent.name, ...length }
      slot.open += 1
      const ended = (status: number, text: string | undefined): void => {
        slot.open -= 1
        if (text !== undefined) sent.responded(status)
      }
      arrive(slot, { process, kind, afterMs: random() * 0.3 }, (member) => {
        void member
          .respond({ ...request, headers }, undefined, half)
          .then((response) => whenWhole(process, response, (text) => ended(response.status, text), sent.told))
      })
    },
  }
}

export type Writers = ReturnType<typeof createWriters>
