import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { GatewayError } from '../../errors.ts'
import type { GatewayResponse } from '../../http/message.ts'
import { errorAnswer } from '../../pipeline/error-answer.ts'
import type { Service } from '../../pipeline/service.ts'
import type { EdgeEvent } from '../events.ts'
import type { EdgeHandlers } from '../listener.ts'
import { underWay } from './connections.ts'
import { createGuard, type GuardOptions } from './guard.ts'
import { faultTexts } from './message-faults.ts'
import {
  answerSocket,
  asRawError,
  isAnswered,
  isRefusable,
  pathOfPacket,
  protocolFault,
} from './raw-errors.ts'
import { serviceOf } from './service-of.ts'

export type FrontOptions = {
  /** In any order; the longest mount that fits wins. */
  readonly services: readonly Service[]
  /** See guard.ts. */
  readonly distrusted: Set<Socket>
  /** Takes what is not refused here. */
  take(incoming: IncomingMessage, outgoing: ServerResponse): void
  send(outgoing: ServerResponse, response: GatewayResponse): void
  /** A request that never became an exchange: reported with the service whose shape its error has. */
  refusedEarly(error: GatewayError, service: Service | undefined): void
  report(event: EdgeEvent): void
  /** Why a request is not even looked at; undefined: it is. Asked by `turnAway` alone. */
  turnedAway(): GatewayError | undefined
}

/** What the public port calls. */
export type Front = EdgeHandlers & {
  /** In place of `request`, when even hits are given up. */
  turnAway(incoming: IncomingMessage, outgoing: ServerResponse): void
}

/** What stands before Fastify: everything that is refused without a route having been looked for. */
export const createFront = (options: FrontOptions): Front => {
  const { services, take } = options

  const refuse = (incoming: IncomingMessage, outgoing: ServerResponse, error: GatewayError): void => {
    const service = serviceOf(services, incoming.url as string)
    options.refusedEarly(error, service)
    options.send(outgoing, errorAnswer(service, error))
  }
  const guard: Omit<GuardOptions, 'take'> = {
    distrusted: options.distrusted,
    refuse: (incoming, outgoing, fault) => {
      const code = fault === 'field-count' ? 'fields_too_large' : 'malformed_request'
      options.report({ kind: 'no-request', reason: fault })
      refuse(
        incoming,
        outgoing,
        new GatewayError(code, { detail: faultTexts[fault], fields: ['Connection', 'close'] }),
      )
    },
  }
  return {
    request: createGuard({ ...guard, take }),
    turnAway: createGuard({
      ...guard,
      take: (incoming, outgoing) => {
        const error = options.turnedAway()
        if (error === undefined) take(incoming, outgoing)
        else refuse(incoming, outgoing, error)
      },
    }),
    clientError: (error: Error & { readonly rawPacket?: Buffer }, socket) => {
      if (isAnswered(socket) || options.distrusted.has(socket)) return
      if (!isRefusable(error)) {
        socket.destroy()
        return
      }
      options.report({ kind: 'no-request', reason: protocolFault(error) })
      // What ends a request in the middle of its content shows no path.
      const request = underWay(socket)?.req
      const path = request?.complete === false ? (request.url as string) : pathOfPacket(error.rawPacket)
      const service = serviceOf(services, path)
      const raw = asRawError(error)
      options.refusedEarly(raw, service)
      answerSocket(socket, errorAnswer(service, raw))
    },
  }
}
