import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buildConnector, Client } from 'undici'
import { type Clock, withTimeout } from '../clock.ts'
import type { ReceiverConfig } from '../config/config.ts'
import { readBody } from '../http/bodies/read-body.ts'
import { retryAfterMs } from '../http/headers/retry-after.ts'
import { discard } from '../http/message.ts'
import { systemLookup } from '../system-lookup.ts'
import { guardConnection } from '../upstream/guard-connection.ts'
import { maxInterimResponses } from '../upstream/messages.ts'
import type { CachePurge } from './purge-requests.ts'

const maxRetryAfterMs = 30_000
const maxResponseBytes = 65_536
/** Characters of a process id, of which any more could fill the memory. */
const maxIdLength = 128

/** Why a request was not confirmed: for the log, from a closed set. */
export class Unconfirmed extends Error {
  readonly retryAfterMs: number

  constructor(reason: string, retryAfterMs = 0) {
    super(reason)
    this.retryAfterMs = retryAfterMs
  }
}

export const causeOf = (error: unknown): string => {
  if (error instanceof Unconfirmed) return error.message
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown }
  return typeof code === 'string' ? code : String(name)
}

/** The id of the process that confirmed, from `Trellis-Receiver`; undefined when the response has none. */
const processIdIn = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= maxIdLength ? value : undefined

/** A lookup that knows one address: the connection goes to this instance, whatever else the name resolves to. */
const lookupOf =
  (address: string): LookupFunction =>
  (_, options, callback) => {
    const family = isIP(address)
    if (options.all === true) callback(null, [{ address, family }])
    else callback(null, address, family)
  }

/**
 * Sends one request and reads its response: resolves to the id of the process that confirmed, rejects when it is not confirmed.
 * `address`: of one instance, where the name in the URL has several.
 */
export const createSender = (
  config: ReceiverConfig,
  confirms: (content: string) => boolean,
  address: string | undefined,
  clock: Pick<Clock, 'now'>,
) => {
  const { url, timeoutMs, ca } = config
  const connect = buildConnector({
    timeout: timeoutMs,
    ...(ca.isSet ? { ca: ca.reveal() } : {}),
    lookup: address === undefined ? systemLookup : lookupOf(address),
  })
  const client = new Client(new URL(url).origin, {
    pipelining: 1,
    connect: (target, callback) => {
      const socket = connect(target, callback) as unknown as Socket
      // A fault ends the request, which is sent again.
      guardConnection(socket, () => {})
      return socket
    },
  })
  const waitMs = (retryAfter: string | string[] | undefined): number =>
    Math.min(retryAfterMs(retryAfter?.toString(), clock.now()) ?? 0, maxRetryAfterMs)

  return {
    send: ({ method, path, headers, body }: CachePurge): Promise<string | undefined> =>
      withTimeout(timeoutMs, async (abort) => {
        let interim = 0
        const response = await client.request({
          // Any token is a method (RFC 9110 §9.1); the types name those of WHATWG.
          method: method as 'POST',
          path,
          headers,
          body: body ?? null,
          signal: abort.signal,
          onInfo: () => {
            interim += 1
            if (interim > maxInterimResponses) abort.abort(new Unconfirmed('too-many-interim-responses'))
          },
        })
        const reading = await readBody(response.body, maxResponseBytes)
        if (reading.kind !== 'whole') {
          discard(response.body)
          throw new Unconfirmed('response-too-long')
        }
        const { statusCode } = response
        if (statusCode < 200 || statusCode > 299)
          throw new Unconfirmed(`status-${statusCode}`, waitMs(response.headers['retry-after']))
        if (!confirms(reading.content.toString())) throw new Unconfirmed('not-confirmed')
        return processIdIn(response.headers['trellis-receiver'])
      }),
    close: (): Promise<void> => client.destroy(),
  }
}
