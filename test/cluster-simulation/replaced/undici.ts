import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
// In the bundle this is the package itself: only this folder gets it.
import { errors } from 'undici'
import { currentProcess, type Process } from '../world.ts'

// What stands in the bundle of the simulation in place of the HTTP client: a pool hands each request to the simulated servers, which call
// its handler as connections of undici do.

export { errors }

export type Serve = (
  request: Dispatcher.DispatchOptions,
  handler: Required<Dispatcher.DispatchHandler>,
) => void

/** Who answers the requests of all pools. */
export const servers: { serve: Serve } = {
  serve: () => {
    throw new Error('there is no simulated upstream')
  },
}

export class Pool {
  readonly stats = { connected: 0, free: 0 }
  destroyed = false

  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    servers.serve(request, handler as Required<Dispatcher.DispatchHandler>)
    return true
  }

  async close(): Promise<void> {
    this.destroyed = true
  }

  async destroy(): Promise<void> {
    this.destroyed = true
  }
}

export type PurgeRequest = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
  /** The one that sends it. */
  readonly process: Process
}

export type PurgeResponse = {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readable
}

type Responded = (status: number, headers: PurgeResponse['headers']) => void

/** What is in front of the gateways, which is sent purges. */
export const receivers = {
  purge: (_: PurgeRequest, __: Responded, failed: (error: Error) => void): void =>
    failed(new Error('there is no simulated receiver')),
}

/** As Cloudflare says that it has done something. */
const contentOf = (status: number): readonly Buffer[] =>
  status === 204 ? [] : [Buffer.from(JSON.stringify({ success: status === 200 }))]

/** Sends purges. */
export class Client {
  request({
    headers,
    body,
    signal,
  }: {
    readonly headers: PurgeRequest['headers']
    readonly body: string | null
    readonly signal: AbortSignal
  }): Promise<PurgeResponse> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      const respond: Responded = (statusCode, responseHeaders) =>
        resolve({
          ...{ statusCode, headers: responseHeaders },
          body: Readable.from(contentOf(statusCode), { objectMode: false }),
        })
      receivers.purge({ headers, body: body ?? undefined, process: currentProcess() }, respond, reject)
    })
  }

  async destroy(): Promise<void> {}
}

export const buildConnector = () => (): never => {
  throw new Error('simulated pools have no connections')
}
