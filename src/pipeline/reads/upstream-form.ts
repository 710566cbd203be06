import { acceptedForms, forwardedCodings } from '../../http/coding/accept-encoding.ts'
import { withUncodedTags } from '../../http/conditional/entity-tags.ts'
import { remembered } from '../../http/memo.ts'
import { type RequestFields, requestField } from '../../http/message.ts'
import type { Ready } from '../exchange.ts'

/** `Accept-Encoding` for a response that the gateway reads or rewrites. */
export const uncoded = 'identity'

const passed = remembered(forwardedCodings, 64)

/** Codings that a stored response is decoded from, once for all clients. */
const decodable = ['br', 'gzip'] as const

const stored = remembered((value) => {
  const { codings } = acceptedForms(value, decodable)
  return codings.length === 0 ? uncoded : codings.join(', ')
}, 64)

const acceptedBy = ({ request, service }: Ready): string | undefined =>
  // Names and URLs are translated in uncoded contents only.
  service.translation === undefined ? requestField(request.fields, 'accept-encoding') : undefined

/** `Accept-Encoding` for a response to this client alone, as the upstream sends it. */
export const codingsToPass = (exchange: Ready): string => {
  const accepted = acceptedBy(exchange)
  return accepted === undefined ? uncoded : passed(accepted)
}

/**
 * `Accept-Encoding` for a response that may be stored. The client accepts what is asked for: it gets the response unchanged where
 * that is not stored. Parts and lengths are those of the uncoded form.
 */
export const codingsToStore = (exchange: Ready, added: Readonly<Record<string, string>>): string => {
  const { method, request } = exchange
  const isPartial = request.fields['range'] !== undefined || added['range'] !== undefined
  const accepted = method === 'HEAD' || isPartial ? undefined : acceptedBy(exchange)
  return accepted === undefined ? uncoded : stored(accepted)
}

/** Request fields that `ownConditions` replaces. */
export const tagConditions: ReadonlySet<string> = new Set(['if-match', 'if-none-match'])

export const hasTagCondition = (fields: RequestFields): boolean =>
  fields['if-none-match'] !== undefined || fields['if-match'] !== undefined

/** Entity tags of content codings are made by the gateway: the upstream cannot compare them, so its own tags are added. */
export const ownConditions = (fields: RequestFields): Readonly<Record<string, string>> => {
  const match = requestField(fields, 'if-match')
  const noneMatch = requestField(fields, 'if-none-match')
  return {
    ...(match === undefined ? {} : { 'if-match': withUncodedTags(match) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': withUncodedTags(noneMatch) }),
  }
}
