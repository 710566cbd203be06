import type { ServerResponse } from 'node:http'
import type { Config } from '../../config/config.ts'
import type { Service } from '../../exchange/service.ts'
import { memoizeByObject } from '../../http/memo.ts'
import { discard, type GatewayResponse } from '../../http/message.ts'
import type { EdgeOptions } from '../edge-options.ts'
import { isReset, withUnreadContent } from '../listener/read-request.ts'
import { createChangesFor } from './response-changes.ts'
import { type SendOptions, sendResponse } from './send-response.ts'

/** A response over HTTP/2 whose stream has closed emits `close` no more. */
export const hasLeft = (raw: ServerResponse): boolean => raw.destroyed || isReset(raw.req)

type SenderOptions = Pick<EdgeOptions, 'cors' | 'isDraining' | 'limits' | 'logger' | 'poisoned'> & {
  readonly services: readonly Service[]
}

const keepAliveLinesOf = (timeoutMs: number): string =>
  timeoutMs === 0
    ? 'Connection: keep-alive\r\n'
    : `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(timeoutMs / 1000)}\r\n`

/** Sends responses to clients, with what the configuration adds to each. */
export class ResponseSender {
  readonly #poisoned: EdgeOptions['poisoned']
  readonly #cors: Config['cors'] | undefined
  readonly #sending: SendOptions
  readonly #changesWith = memoizeByObject((cors: Config['cors']) => createChangesFor(cors))
  readonly #changesWithoutCors = createChangesFor(undefined)
  /** Does the gateway itself answer preflights of some service? */
  readonly hasCors: boolean
  /** Logs that a response could not be sent as it was. */
  readonly broken: (error: Error) => void

  constructor({ cors, isDraining, limits, logger, poisoned, services }: SenderOptions) {
    this.#poisoned = poisoned
    this.#cors = cors
    this.hasCors = cors !== undefined || services.some(({ responses }) => responses.cors !== undefined)
    this.broken = (error) => logger.debug({ err: error }, 'the body ended early')
    this.#sending = {
      isDraining,
      keepAliveLines: keepAliveLinesOf(limits.keepAliveTimeoutMs),
      broken: this.broken,
    }
  }

  corsOf(service: Service | undefined): Config['cors'] | undefined {
    return service === undefined ? this.#cors : service.responses.cors
  }

  /** The changes of the service are applied last, so that they hold for every header that the gateway adds. */
  send(outgoing: ServerResponse, service: Service | undefined, response: GatewayResponse): void {
    if (outgoing.headersSent || hasLeft(outgoing)) {
      discard(response.content)
      return
    }
    const cors = this.corsOf(service)
    const changesFor = cors === undefined ? this.#changesWithoutCors : this.#changesWith(cors)
    const changes = changesFor(service?.responses.changes, outgoing.req)
    sendResponse(outgoing, withUnreadContent(outgoing, response, this.#poisoned), this.#sending, changes)
  }

  /** A response that has all its headers. */
  sendComplete(outgoing: ServerResponse, response: GatewayResponse): void {
    sendResponse(outgoing, response, this.#sending)
  }
}
