import type { Purge } from '../../src/cache/invalidation.ts'
import { EndSignal } from '../../src/http/end-signal.ts'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import { oneOf } from '../support/random.ts'
import { createBatchClients } from './client-batches.ts'
import { createWriters } from './client-writes.ts'
import type { SimulatedCluster, Slot } from './cluster.ts'
import { createFrontClients } from './front-clients.ts'
import type { History } from './history.ts'
import { arrive, processOf } from './members-in-slots.ts'
import { createOracle, seenIn } from './oracle.ts'
import type { Plan, PurgeKind } from './plan.ts'
import type { Front } from './receivers/front.ts'
import { graphqlPath } from './services/graphql.ts'
import type { Interface, Resource, Shown } from './services/interface.ts'
import { requestFor, resourcesWith } from './services/services.ts'
import type { SimulatedUpstream } from './upstream.ts'
import { whenWhole } from './when-whole.ts'
import { world } from './world.ts'

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

/** Those of the service that is not GraphQL. */
const ofRest = (resources: readonly Resource[]): readonly Resource[] =>
  resources.filter(({ name }) => !name.startsWith(graphqlPath))

/** Undefined: it is an error, or is not complete. Of one item 404 says that it is gone. */
const shownBy = (resource: Resource, status: number, text: string | undefined): Shown | undefined => {
  if (text === undefined) return undefined
  if (status === 404 && resource.items.length === 1) return {}
  return status === 200 ? resource.shown(text) : undefined
}

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
  const random = world.randomFor('clients')
  const oracle = createOracle(plan, history)
  const { goneVersion } = upstream
  const inFront = createFrontClients({ goneVersion, front, oracle, history, random })
  const counts = { reads: 0, hits: 0 }

  const read = (slot: Slot, resource: Resource, leavesAfterMs?: number): void => {
    const process = processOf(slot)
    if (process === undefined) return
    counts.reads += 1
    const path = resource.name
    const request = requestFor(resource, random)
    const before = oracle.floorsOf(path)
    const from = history.moment()
    const begun = `begun at ${world.now.toFixed(2)}`
    slot.open += 1
    const judged = (response: GatewayResponse, text: string | undefined): void => {
      slot.open -= 1
      const shown = shownBy(resource, response.status, text)
      if (shown === undefined) return
      const status = headerValue(response.headers, 'cache-status') ?? ''
      if (status.includes('hit')) counts.hits += 1
      if (world.isTraced) world.note(`${process.name}: ${path} ${text} ${status} ${begun}`)
      const seen = seenIn(resource, shown, goneVersion)
      history.read(process.name, path, seen, from)
      oracle.judge(path, seen, before, `read at ${process.name}, ${begun}, ${status}`)
    }
    arrive(
      slot,
      { process, kind: `${request.method} ${request.target}`, afterMs: random() * 0.3 },
      (member) => {
        const signal = new EndSignal()
        if (leavesAfterMs !== undefined)
          world.schedule(world.now + leavesAfterMs, process, 'a client leaves', () =>
            signal.end(new Error('the client has left')),
          )
        void member
          .respond(request, signal)
          .then((response) => whenWhole(process, response, (text) => judged(response, text)))
      },
    )
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

  const writers = createWriters({
    ...{ plan, service, upstream, slots, oracle, inFront, random, probe, lostAt, awayAt },
  })
  const batches = createBatchClients({
    hasDeadline: plan.settings.batchDeadlineMs > 0,
    service,
    upstream,
    writers,
    oracle,
    history,
    random,
  })

  /** Somebody changes an item behind the gateways, and has an operator purge it. */
  const purge = (slot: Slot, item: number, what: PurgeKind): void => {
    const process = processOf(slot)
    if (process === undefined) return
    const { version } = upstream.change(item, 'save')
    const shown = resourcesWith(service, item)
    const path = service.item(item).requests[0]?.target ?? ''
    arrive(slot, { process, kind: `purge ${what}`, afterMs: 0 }, (member) => {
      void member.purge(selectorOf(what, path)).then((outcome) => {
        if (outcome === 'unacknowledged') return
        const by = `purged by ${process.name}`
        const reached = what === 'target' ? shown.slice(0, 1) : what === 'all' ? shown : ofRest(shown)
        oracle.acknowledge(reached, { item, version, why: by, reach: 'front' })
        probe(item)
      })
    })
  }

  return {
    /** Of all reads, those in front included. */
    counts: () => ({
      reads: counts.reads + batches.counts.reads + inFront.counts.reads,
      hits: counts.hits,
      frontHits: inFront.counts.hits,
      writes: writers.counts.writes,
      batches: batches.counts.batches,
    }),
    /** 0 stands for a list. */
    resourceOf: (item: number): Resource => (item === 0 ? oneOf(random, service.lists) : service.item(item)),
    read,
    readFront: inFront.read,
    write: writers.write,
    batch: batches.batch,
    purge,
    probe,
    violation: oracle.violation,
  }
}
