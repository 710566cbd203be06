import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { ClientRequest } from 'node:http'

/** https://nodejs.org/api/diagnostics_channel.html#http */
const started = 'http.client.request.start'

const requestOf = (message: unknown): ClientRequest | undefined => {
  const request = (message as { readonly request?: unknown }).request
  return request instanceof ClientRequest ? request : undefined
}

/**
 * Ends requests to a collector that take longer than that. The exporter's own timeout begins anew with each byte, and it waits for
 * ever for an answer that changes the protocol: after some of those it would not export any more, whatever the collector does
 * then. It gives nobody its requests, and an agent of ours would take the place of the one that it makes of its environment.
 * Returns what stops it.
 */
export const boundExports = (collector: URL, mostMs: number): (() => void) => {
  const path = `${collector.pathname}${collector.search}`
  // A request has the address of RFC 3986's IP-literal without its brackets.
  const host = collector.hostname.replaceAll(/[[\]]/g, '')
  const bound = (message: unknown): void => {
    const request = requestOf(message)
    if (request?.method !== 'POST' || request.path !== path || request.host !== host) return
    const timer = setTimeout(() => request.destroy(new Error('the collector took too long')), mostMs)
    timer.unref()
    request.once('close', () => clearTimeout(timer))
    request.once('upgrade', (_, socket) => {
      // It is nobody's from here on: an error of its own would end the process, and the request's has to be told by hand.
      socket.on('error', () => undefined).destroy()
      request.emit('error', new Error('the collector changed the protocol'))
    })
  }
  subscribe(started, bound)
  return () => {
    unsubscribe(started, bound)
  }
}
