import type { ReceiverConfig } from '../../../src/config/config.ts'
import type { GatewayResponse } from '../../../src/http/message.ts'
import { network } from '../redis/network.ts'
import { type PurgeRequest, type PurgeResponse, receivers } from '../replaced/undici.ts'
import { world } from '../world.ts'

/** Time between a change and its purge: responses that were on their way have arrived (docs/decisions/0023-downstream.md). */
export const settleMs = 50

/** What stands in front of all gateways. */
export type FrontKind = ReceiverConfig['type']

/** A reader asks for a target. */
export type Lookup = {
  /** What it answers with; undefined: it asks a gateway. */
  readonly stored: string | undefined
  /** The head of the response of a gateway is there; `whole` is called with its content. */
  readonly receive: (response: GatewayResponse) => { readonly whole: (content: string) => void }
}

/** What one kind of receiver does. */
export type Receiver = {
  look(target: string, then: (lookup: Lookup) => void): void
  /** Carries a purge out; `confirm` says so to the gateway. */
  purge(request: PurgeRequest, confirm: (status: number, headers: PurgeResponse['headers']) => void): void
  /** It stores nothing of what it had. */
  restart(): void
}

/** A cache in front of all gateways, with its faults: it refuses purges, loses its confirmations, and is down for a while. */
export const createFront = (receiver: Receiver) => {
  const random = world.randomFor('front')
  let refusesUntil = Number.NEGATIVE_INFINITY
  let losesUntil = Number.NEGATIVE_INFINITY
  let downUntil = Number.NEGATIVE_INFINITY
  const isDown = (): boolean => world.now < downUntil

  /** Calls back in the process of the gateway; never, when the response is lost. */
  receivers.purge = (request: PurgeRequest, responded, failed): void => {
    const back = (kind: string, run: () => void): void => {
      world.schedule(world.now + network.delay(random), request.process, kind, run)
    }
    const carryOut = (): void =>
      receiver.purge(request, (status, headers) => {
        if (world.now < losesUntil && random() < 0.5) return
        back('a purge is confirmed', () => responded(status, headers))
      })
    world.schedule(world.now + network.delay(random), undefined, 'a purge arrives', () => {
      if (isDown()) back('a purge fails', () => failed(new Error('connect ECONNREFUSED')))
      else if (world.now < refusesUntil) back('a purge is refused', () => responded(503, {}))
      else carryOut()
    })
  }

  return {
    look: receiver.look,
    refuse: (ms: number): void => {
      refusesUntil = world.now + ms
    },
    loseResponses: (ms: number): void => {
      losesUntil = world.now + ms
    },
    restart: (ms: number): void => {
      downUntil = world.now + ms
      receiver.restart()
    },
    get isDown() {
      return isDown()
    },
  }
}

export type Front = ReturnType<typeof createFront>
