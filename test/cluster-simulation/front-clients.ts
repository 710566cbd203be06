import type { GatewayResponse } from '../../src/http/message.ts'
import type { Random } from '../support/random.ts'
import type { Slot } from './cluster.ts'
import type { History } from './history.ts'
import { arrive, processOf } from './members-in-slots.ts'
import { type Oracle, seenIn } from './oracle.ts'
import type { Front, Lookup } from './receivers/front.ts'
import type { Resource } from './services/interface.ts'
import { nameAtFront, requestFor } from './services/services.ts'
import { whenWhole } from './when-whole.ts'
import { world } from './world.ts'

type FrontClientParts = {
  readonly goneVersion: (item: number) => number
  readonly front: Front
  readonly oracle: Oracle
  readonly history: History
  readonly random: Random
}

/** Clients of the cache in front of all gateways, which asks the one in a slot for what it has not stored. */
export const createFrontClients = ({ goneVersion, front, oracle, history, random }: FrontClientParts) => {
  const counts = { reads: 0, hits: 0 }

  const read = (slot: Slot, resource: Resource): void => {
    if (front.isDown) return
    const path = nameAtFront(resource)
    const request = requestFor(resource, random)
    const { target } = request
    // It passes on what it cannot store.
    if (request.method !== 'GET') return
    const floors = oracle.floorsOf(path)
    const from = history.moment()
    const judged = (text: string, what: string): void => {
      counts.reads += 1
      const seen = seenIn(resource, resource.shown(text) ?? {}, goneVersion)
      history.read('front', path, seen, from)
      oracle.judge(path, seen, floors, what)
    }
    const ask = ({ receive }: Lookup): void => {
      const process = processOf(slot)
      if (process === undefined) return
      const what = `read at ${process.name} for the front, begun at ${world.now.toFixed(2)}`
      slot.open += 1
      const received = (response: GatewayResponse): void => {
        const entry = receive(response)
        whenWhole(process, response, (text) => {
          slot.open -= 1
          if (response.status !== 200 || text === undefined) return
          if (world.isTraced) world.note(`front: from ${process.name} ${target} ${text}`)
          entry.whole(text)
          judged(text, what)
        })
      }
      arrive(slot, { process, kind: `GET ${target} for the front`, afterMs: random() * 0.3 }, (member) => {
        void member.respond(request).then(received)
      })
    }
    front.look(target, (lookup) => {
      const { stored } = lookup
      if (stored === undefined) {
        ask(lookup)
        return
      }
      counts.hits += 1
      if (world.isTraced) world.note(`front: ${target} ${stored}`)
      judged(stored, `stored in front, read at ${world.now.toFixed(2)}`)
    })
  }
  return { counts, read }
}

export type FrontClients = ReturnType<typeof createFrontClients>
