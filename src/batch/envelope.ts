import { isRecord } from './is-record.ts'
import type { BatchItem } from './item.ts'
import { type ItemError, itemError } from './item-error.ts'
import { itemFields } from './item-fields.ts'
import { parseItemPath } from './item-path.ts'
import { rawBodies } from './raw-bodies.ts'

/** One place of the batch: an item that can be asked about, or what is wrong with it. Places never shift. */
export type Place =
  | {
      readonly kind: 'item'
      readonly item: BatchItem
      /** Names of the members of its body. */
      readonly bodyNames: readonly string[]
    }
  | { readonly kind: 'faulty'; readonly error: ItemError }

/** A batch as read, or the error for the whole. */
export type ReadEnvelope =
  | { readonly kind: 'batch'; readonly allMustValidate: boolean; readonly places: readonly Place[] }
  | { readonly kind: 'malformed'; readonly status: 400; readonly body: unknown }

const malformed = (code: string, params: unknown, message: string, details?: unknown): ReadEnvelope => ({
  kind: 'malformed',
  status: 400,
  body: { code, message, data: { status: 400, params, ...(details === undefined ? {} : { details }) } },
})

/** The 400 for `requests`, in WordPress's shape. */
export const invalidRequests = (code: string, message: string): ReadEnvelope =>
  malformed('rest_invalid_param', { requests: message }, 'Invalid parameter(s): requests', {
    requests: { code, message, data: null },
  })

/** One entry of `requests`; `bodyText` is its body as it stands in the text of the batch, when there is one. */
export const placeOf = (entry: unknown, index: number, bodyText: string | undefined): Place => {
  if (!isRecord(entry) || typeof entry['path'] !== 'string')
    return { kind: 'faulty', error: itemError('no_route') }
  const target = parseItemPath(entry['path'])
  if (target.kind === 'unparsable') return { kind: 'faulty', error: itemError('parse_path_failed') }
  if (target.kind === 'no-route') return { kind: 'faulty', error: itemError('no_route') }
  const method = typeof entry['method'] === 'string' ? entry['method'] : 'POST'
  const { body } = entry
  // A list is a body too, and its names are its places. An empty body is none, as in WordPress.
  const bodyNames = typeof body === 'object' && body !== null ? Object.keys(body) : []
  const content = bodyNames.length === 0 ? undefined : Buffer.from(bodyText ?? JSON.stringify(body))
  const fields = itemFields(entry['headers'], content !== undefined)
  const { path, query } = target
  return { kind: 'item', item: { index, method, path, query, fields, content }, bodyNames }
}

/** Reads a parsed batch body, and takes the items' bodies from its JSON text when there is one. The row's own validation has come before; what it would refuse is refused here all the same. */
export const readEnvelope = (envelope: unknown, maxItems: number, text?: string): ReadEnvelope => {
  const requests = isRecord(envelope) ? envelope['requests'] : undefined
  if (requests === undefined) {
    return malformed('rest_missing_callback_param', ['requests'], 'Missing parameter(s): requests')
  }
  if (!Array.isArray(requests)) return invalidRequests('rest_invalid_type', 'requests is not of type array.')
  if (requests.length > maxItems) {
    return invalidRequests('rest_too_many_items', `requests must contain at most ${maxItems} items.`)
  }
  const allMustValidate = isRecord(envelope) && envelope['validation'] === 'require-all-validate'
  const bodies = text === undefined ? [] : rawBodies(text)
  return { kind: 'batch', allMustValidate, places: requests.map((entry, i) => placeOf(entry, i, bodies[i])) }
}
