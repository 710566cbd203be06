import { EndSignal } from '../../src/http/end-signal.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import type { Random } from '../support/random.ts'
import type { Slot } from './cluster.ts'
import type { Front } from './front.ts'
import type { History } from './history.ts'
import { type Interface, nameAtFront, type Resource, targetOf } from './interfaces.ts'
import { arrive, processOf } from './members-in-slots.ts'
import type { Oracle } from './oracle.ts'
import { whenWhole } from './when-whole.ts'
import { world } from './world.ts'

type FrontClientParts = {
  readonly service: Interface
  readonly front: Front
  readonly oracle: Oracle
  readonly history: History
  readonly random: Random
}

/** Clients of the cache in front of all gateways, which asks the one in a slot for what it has not stored. */
export const createFrontClients = ({ service, front, oracle, history, random }: FrontClientParts) => {
  const counts = { reads: 0, hits: 0 }

  const read = (slot: Slot, resource: Resource): void => {
    if (front.isDown) return
    const path = nameAtFront(resource)
    const target = targetOf(resource, random)
    const floors = oracle.floorsOf(path)
    const from = history.moment()
    const judged = (text: string, what: string): void => {
      counts.reads += 1
      history.read('front', path, service.shown(text), from)
      oracle.judge(path, text, floors, what)
    }
    const stored = front.stored(target)
    if (stored !== undefined) {
      counts.hits += 1
      if (world.isTraced) world.note(`front: ${target} ${stored}`)
      judged(stored, `stored in front, read at ${world.now.toFixed(2)}`)
      return
    }
    const process = processOf(slot)
    if (process === undefined) return
    const what = `read at ${process.name} for the front, begun at ${world.now.toFixed(2)}`
    slot.open += 1
    const received = (response: GatewayResponse): void => {
      const entry = front.receive(target, response)
      whenWhole(process, response, (text) => {
        slot.open -= 1
        if (response.status !== 200 || text === undefined) return
        if (world.isTraced) world.note(`front: from ${process.name} ${target} ${text}`)
        entry.content = text
        judged(text, what)
      })
    }
    arrive(slot, { process, kind: `GET ${target} for the front`, afterMs: random() * 0.3 }, (member) => {
      void member.read(target, new EndSignal() as unknown as AbortSignal).then(received)
    })
  }
  return { counts, read }
}
