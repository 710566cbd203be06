import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { GatewayError } from '../../errors.ts'
import { earlyErrorResponse } from '../../exchange/error-response.ts'
import type { Client } from '../../exchange/request-context.ts'
import type { Service } from '../../exchange/service.ts'
import { corsForOwnResponse, plainOrigin } from '../../http/headers/cors.ts'
import type { RequestHeaders } from '../../http/headers/header-lines.ts'
import type { EdgeOptions } from '../edge-options.ts'
import type { ResponseSender } from '../send/response-sender.ts'

const noHeaders: RequestHeaders = {}

type RefusalParts = Pick<EdgeOptions, 'refusedEarly'> & {
  readonly sender: ResponseSender
  nextId(): string
  clientOf(socket: Socket, headers: RequestHeaders): Client
}

/** Answers requests that do not reach `handle`, or that it has failed for, in the format of their service. */
export class EarlyRefusals {
  readonly #parts: RefusalParts

  constructor(parts: RefusalParts) {
    this.#parts = parts
  }

  /** Reports a refusal; returns the id of the request. Without `incoming` the bytes were no request. */
  report(
    error: GatewayError,
    service: Service | undefined,
    socket: Socket,
    incoming: IncomingMessage | undefined,
    id = this.#parts.nextId(),
  ): string {
    const headers = incoming?.headers ?? noHeaders
    this.#parts.refusedEarly({
      id,
      service,
      error,
      client: this.#parts.clientOf(socket, headers),
      request:
        incoming === undefined
          ? undefined
          : { method: incoming.method as string, target: incoming.url as string, headers },
    })
    return id
  }

  refuse(outgoing: ServerResponse, service: Service | undefined, error: GatewayError, id: string): void {
    const { req } = outgoing
    const { sender } = this.#parts
    try {
      const response = earlyErrorResponse(service, error, {
        id: this.report(error, service, req.socket, req, id),
        headers: req.headers,
      })
      const origins = service?.responses.anyOrigins
      // The request has no route: the index of a site speaks for it.
      const corsHeaders = origins && corsForOwnResponse(response, origins.site(), plainOrigin(req.headers))
      sender.send(outgoing, service, corsHeaders ?? response)
    } catch (cause) {
      sender.broken(cause as Error)
      outgoing.destroy()
    }
  }
}
