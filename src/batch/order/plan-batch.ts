import type { Pieces } from '../../http/bodies/turns.ts'
import { queryParameters } from '../../http/form-text.ts'
import type { ItemRules } from '../../service/contract.ts'
import { type BatchEnvelope, type EnvelopeItem, envelopeItem, rawBodies } from '../envelope/read-envelope.ts'
import type { BatchItem, ItemCheck, ItemError } from '../item.ts'
import { planOrder, type Waits } from './plan-order.ts'
import { type OrderFacts, unknownOrder } from './reach.ts'

/** Names of the parameters an item sets, in query and body, down to the first bracket. */
const parametersOf = (item: BatchItem, bodyNames: readonly string[]): readonly string[] => {
  const inQuery = queryParameters(item.query).map(([name]) => name.split('[', 1)[0] ?? '')
  return [...inQuery, ...bodyNames]
}

export type PlanOptions = { readonly itemRules: ItemRules }

export type BatchInput = {
  readonly envelope: BatchEnvelope
  /** The JSON that `envelope` was parsed from, if it was JSON: the items' bodies are sent as they stand there. */
  readonly text: string | undefined
  /** Route match, `allow_batch` and validation, without running the item. */
  check(item: BatchItem): Pieces<ItemCheck>
}

export type PlannedItem =
  | { readonly kind: 'runnable'; readonly item: BatchItem; readonly order: OrderFacts }
  | { readonly kind: 'refused'; readonly error: ItemError; readonly method: string | undefined }

export type PlannedBatch = {
  readonly allMustValidate: boolean
  readonly items: readonly PlannedItem[]
  readonly waits: readonly Waits[]
}

/** Reads a batch, and decides which of its items may run and in which order. */
export function* planBatch(
  { itemRules }: PlanOptions,
  { envelope, text, check }: BatchInput,
): Pieces<PlannedBatch> {
  function* planItem(entry: EnvelopeItem): Pieces<PlannedItem> {
    if (entry.kind === 'faulty') return { kind: 'refused', error: entry.error, method: undefined }
    const { item, bodyNames } = entry
    const itemCheck = yield* check(item)
    if (itemCheck.kind === 'runnable') {
      const { checked, conflict } = itemCheck
      const parameters = parametersOf(item, bodyNames)
      return {
        kind: 'runnable',
        item: { ...item, effect: conflict.effect, checked },
        order: { ...conflict, parameters },
      }
    }
    const { status, body, headers = [] } = itemCheck
    return { kind: 'refused', error: { status, body, headers }, method: item.method }
  }
  const bodies = text === undefined ? [] : rawBodies(text)
  const items: PlannedItem[] = []
  for (const [index, entry] of envelope.requests.entries()) {
    yield
    items.push(yield* planItem(envelopeItem(entry, index, bodies[index], itemRules)))
  }
  yield
  return {
    allMustValidate: envelope.validation === 'require-all-validate',
    items,
    waits: planOrder(
      items.map((item) => (item.kind === 'runnable' ? item.order : undefined)),
      itemRules.order ?? unknownOrder,
    ),
  }
}
