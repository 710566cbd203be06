import { GatewayError } from '../../errors.ts'
import {
  forwardableHeader,
  forwardableHeaders,
  isUnusualName,
  namedAway,
} from '../../http/headers/forwardable-headers.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import { isPost } from '../../http/methods.ts'
import { methodOverrideHeader } from '../../service/route-request.ts'
import type { ForwardingFacts } from '../ports.ts'
import type { MatchedContext } from '../request-context.ts'

type Known = Pick<MatchedContext, 'id' | 'client' | 'request' | 'service' | 'identity' | 'matching'>

const quoted = (address: string): string => (address.includes(':') ? `"[${address}]"` : address)

/** Headers that the gateway writes in place of the client's: Via, Forwarded (RFC 7239) and X-Forwarded-* from the connection and the configuration. */
const written: Readonly<Record<string, (context: Known, facts: ForwardingFacts) => string>> = {
  via: ({ request }, { via }) => {
    const before = requestHeader(request.headers, 'via')
    return before === undefined ? `1.1 ${via}` : `${before}, 1.1 ${via}`
  },
  forwarded: ({ client, service }) =>
    `for=${quoted(client.address)};proto=${client.protocol};host="${service.address.publicHost}"`,
  'x-forwarded-for': ({ client }) => client.address,
  'x-forwarded-proto': ({ client }) => client.protocol,
  'x-forwarded-host': ({ service }) => service.address.publicHost,
  'x-request-id': ({ id }) => id,
}

const writtenHeaders = Object.entries(written)

const declaredHeader = (
  { request: { headers } }: Known,
  name: string,
  stripped: ReadonlySet<string>,
): string | undefined =>
  stripped.has(name) || namedAway(headers).has(name) ? undefined : requestHeader(headers, name)

const headersOf = ({ matching }: Known): readonly string[] =>
  (matching.kind === 'found' && matching.endpoint.headers) || []

/** The name that many upstreams read as this one: `account-id` for `account_id`. */
const twinOf = (name: string): string => name.replaceAll(/[._]/g, '-')

/** The key of a stored response has only the headers that its own operation declares: others are not sent, nor is the twin of a claim. */
const declaredNames = (context: Known): ReadonlySet<string> => {
  const names = [...context.service.contract.declaredHeaders, ...headersOf(context).filter(isUnusualName)]
  return new Set(names.filter((name) => context.service.access?.claimHeaders.includes(twinOf(name)) !== true))
}

/** The response is keyed by the declared one. */
const twinsOf = (context: Known, declared: ReadonlySet<string>): readonly string[] => {
  const headers = headersOf(context)
  return [...declared].map(twinOf).filter((name) => !headers.includes(name))
}

/** With the headers that `access` keeps from the upstream: API keys, and what clients send in place of claims. */
const allStripped = (
  context: Known,
  declared: ReadonlySet<string>,
  stripped: ReadonlySet<string>,
): ReadonlySet<string> => {
  const { access } = context.service
  return access === undefined && declared.size === 0
    ? stripped
    : new Set([...stripped, ...(access?.stripped ?? []), ...twinsOf(context, declared)])
}

/** Of a POST alone, which counts as the method that it names: no other request may turn into a write at the upstream. */
const sentOverride = ({ request, service }: Known): string | undefined =>
  isPost(request.method) && service.contract.sendsMethodOverride
    ? requestHeader(request.headers, methodOverrideHeader)
    : undefined

/** The headers of a request to the upstream, as lines: the client's, and those that the gateway writes, claims among them. Throws loop_detected. */
export const sentHeaders = (
  context: Known,
  stripped: ReadonlySet<string>,
  facts: ForwardingFacts,
): string[] => {
  const { identity, request } = context
  const { headers } = request
  if (requestHeader(headers, 'via')?.includes(facts.via) === true) throw new GatewayError('loop_detected')
  const declared = declaredNames(context)
  const lines = forwardableHeaders(headers, allStripped(context, declared, stripped))
  for (const name of declared) {
    const value = declaredHeader(context, name, stripped)
    if (value !== undefined) lines.push(name, value)
  }
  const override = sentOverride(context)
  if (override !== undefined) lines.push(methodOverrideHeader, override)
  for (const [name, valueFor] of writtenHeaders) lines.push(name, valueFor(context, facts))
  if (identity !== undefined) for (const [name, value] of identity.headers) lines.push(name, value)
  return lines
}

/** The value with which `sentHeaders` sends one header, undefined when it does not; without making the others. */
export const createSentHeader = (
  context: Known,
  stripped: ReadonlySet<string>,
  facts: ForwardingFacts,
): ((name: string) => string | undefined) => {
  const { headers } = context.request
  const declared = declaredNames(context)
  const unsent = { named: namedAway(headers), stripped: allStripped(context, declared, stripped) }
  return (name) =>
    Object.hasOwn(written, name)
      ? written[name]?.(context, facts)
      : (context.identity?.headers.get(name) ??
        (declared.has(name)
          ? declaredHeader(context, name, unsent.stripped)
          : forwardableHeader(headers, name, unsent)))
}
