import type { Dispatcher } from 'undici'
// In the bundle this is the package itself: only this folder gets it.
import { errors } from 'undici'

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

/** Pools make none. */
export class Client {}

export const buildConnector = () => (): never => {
  throw new Error('simulated pools have no connections')
}
