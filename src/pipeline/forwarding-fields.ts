import { GatewayError } from '../errors.ts'
import { requestField } from '../http/fields.ts'
import type { Received } from './exchange.ts'

/** What the gateway says of itself to upstreams. */
export type ForwardingFacts = {
  /** Pseudonym in Via, different for each process, so that a request that comes back is recognised (RFC 9110 §7.6.3). */
  readonly via: string
  /** Host and port of the public URL: never what a client wrote into Host. */
  readonly publicHost: string
}

const quoted = (address: string): string => (address.includes(':') ? `"[${address}]"` : address)

/** Via, Forwarded (RFC 7239) and X-Forwarded-*, made anew from what the gateway knows itself, as lines. Throws loop_detected. */
export const forwardingFields = (
  { id, client, request }: Pick<Received, 'id' | 'client' | 'request'>,
  facts: ForwardingFacts,
): string[] => {
  const via = requestField(request.fields, 'via')
  if (via?.includes(facts.via) === true) throw new GatewayError('loop_detected')
  return [
    ...['via', via === undefined ? `1.1 ${facts.via}` : `${via}, 1.1 ${facts.via}`],
    ...['forwarded', `for=${quoted(client.address)};proto=${client.protocol};host="${facts.publicHost}"`],
    ...['x-forwarded-for', client.address],
    ...['x-forwarded-proto', client.protocol],
    ...['x-forwarded-host', facts.publicHost],
    ...['x-request-id', id],
  ]
}
