import { elementTexts, type JsonObject, type JsonText, memberText } from '../../http/json-text.ts'
import type { ItemRules } from '../../service/contract.ts'
import type { BatchItem, ItemError } from '../item.ts'
import { itemError } from '../item-errors.ts'
import { itemHeaders } from './item-headers.ts'

/** An entry of `requests`, as the row of the batch route has checked it. */
export type BatchEntry = {
  readonly path: string
  readonly method?: string
  readonly body?: unknown
  readonly headers?: JsonObject
}

export type BatchEnvelope = {
  readonly requests: readonly BatchEntry[]
  readonly validation?: string
}

/** An entry of `requests`: an item, or its error. Positions never shift. */
export type EnvelopeItem =
  | {
      readonly kind: 'item'
      readonly item: BatchItem
      readonly bodyNames: readonly string[]
    }
  | { readonly kind: 'faulty'; readonly error: ItemError }

/** For each item the text of its `body`, as it stands in the text of the batch; undefined for one without. */
export const rawBodies = (batch: JsonText): readonly (JsonText | undefined)[] => {
  const requests = memberText(batch, 'requests')
  const items = requests === undefined ? undefined : elementTexts(requests)
  return (items ?? []).map((item) => memberText(item, 'body'))
}

/** One entry of `requests`; `bodyText` is its body as it stands in the text of the batch, when there is one. */
export const envelopeItem = (
  { path: entryPath, method = 'POST', body, headers }: BatchEntry,
  index: number,
  bodyText: string | undefined,
  rules: ItemRules,
): EnvelopeItem => {
  const target = rules.target(entryPath)
  if (target.kind === 'unparsable') return { kind: 'faulty', error: itemError('parse_path_failed') }
  if (target.kind === 'no-route') return { kind: 'faulty', error: itemError('no_route') }
  // A list is a body too, and its indexes are its names.
  const bodyNames = typeof body === 'object' && body !== null ? Object.keys(body) : []
  const content = rules.hasContent(body) ? Buffer.from(bodyText ?? JSON.stringify(body)) : undefined
  const headerLines = itemHeaders(headers, content !== undefined, rules.prefixesWithoutEffect)
  const { path, query } = target
  return {
    kind: 'item',
    item: { index, method, effect: 'write', path, query, headers: headerLines, content },
    bodyNames,
  }
}
