import { GatewayError } from '../../errors.ts'
import { requestField } from '../../http/fields.ts'
import { forwardableField, forwardableFields, namedAway } from '../../http/forwardable-fields.ts'
import type { Received } from '../exchange.ts'

/** What the gateway tells upstreams about itself. */
export type ForwardingFacts = {
  /** Pseudonym in Via, different for each process, so that a request that comes back is recognised (RFC 9110 §7.6.3). */
  readonly via: string
}

type Known = Pick<Received, 'id' | 'client' | 'request' | 'service' | 'identity'>

/** With the fields that `access` keeps from the upstream: API keys, and what clients send in place of claims. */
const allWithheld = ({ service }: Known, withheld: ReadonlySet<string>): ReadonlySet<string> =>
  service.access === undefined ? withheld : new Set([...withheld, ...service.access.withheld])

const quoted = (address: string): string => (address.includes(':') ? `"[${address}]"` : address)

/** Fields that the gateway writes in place of the client's: Via, Forwarded (RFC 7239) and X-Forwarded-* from the connection and the configuration. */
const written: Readonly<Record<string, (known: Known, facts: ForwardingFacts) => string>> = {
  // Stored content must be uncoded.
  'accept-encoding': () => 'identity',
  via: ({ request }, { via }) => {
    const before = requestField(request.fields, 'via')
    return before === undefined ? `1.1 ${via}` : `${before}, 1.1 ${via}`
  },
  forwarded: ({ client, service }) =>
    `for=${quoted(client.address)};proto=${client.protocol};host="${service.publicHost}"`,
  'x-forwarded-for': ({ client }) => client.address,
  'x-forwarded-proto': ({ client }) => client.protocol,
  'x-forwarded-host': ({ service }) => service.publicHost,
  'x-request-id': ({ id }) => id,
}

const writtenFields = Object.entries(written)

const declaredField = (
  { request: { fields } }: Known,
  name: string,
  withheld: ReadonlySet<string>,
): string | undefined =>
  withheld.has(name) || namedAway(fields).has(name) ? undefined : requestField(fields, name)

/** Names such as `api_key`, which only a service that declares them gets: to others they may mean the field with hyphens. */
const addDeclared = (sent: string[], known: Known, withheld: ReadonlySet<string>): void => {
  for (const name of known.service.declaredFields) {
    const value = declaredField(known, name, withheld)
    if (value !== undefined) sent.push(name, value)
  }
}

/** The fields of a request to the upstream, as lines: the client's, and those that the gateway writes, claims among them. Throws loop_detected. */
export const sentFields = (known: Known, withheld: ReadonlySet<string>, facts: ForwardingFacts): string[] => {
  const { identity, request } = known
  const { fields } = request
  if (requestField(fields, 'via')?.includes(facts.via) === true) throw new GatewayError('loop_detected')
  const sent = forwardableFields(fields, allWithheld(known, withheld))
  addDeclared(sent, known, withheld)
  for (const [name, valueFor] of writtenFields) sent.push(name, valueFor(known, facts))
  if (identity !== undefined) for (const [name, value] of identity.fields) sent.push(name, value)
  return sent
}

/** The value with which `sentFields` sends one field, undefined when it does not; without making the others. */
export const createSentField = (
  known: Known,
  withheld: ReadonlySet<string>,
  facts: ForwardingFacts,
): ((name: string) => string | undefined) => {
  const { fields } = known.request
  const unsent = { named: namedAway(fields), withheld: allWithheld(known, withheld) }
  return (name) =>
    Object.hasOwn(written, name)
      ? written[name]?.(known, facts)
      : (known.identity?.fields.get(name) ??
        (known.service.declaredFields.includes(name)
          ? declaredField(known, name, unsent.withheld)
          : forwardableField(fields, name, unsent)))
}
