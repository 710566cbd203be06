import type { ItemExtension } from './extensions.ts'
import type { PlannedItem } from './plan-batch.ts'
import type { Waits } from './plan-order.ts'

/** What a dry run says of one item: what would be sent, or what would be answered. */
const outlook = (item: PlannedItem, extension: ItemExtension | undefined): object => {
  if (item.kind === 'refused') return { runs: false, status: item.error.status, body: item.error.body }
  const { method, path, query } = item.item
  // Path and body are known, and checked, when the items that they refer to have been answered.
  if (extension?.template !== undefined) return { runs: true, method, refersTo: extension.needs }
  return { runs: true, method, path: query === '' ? path : `${path}?${query}` }
}

/** The plan of a batch of which nothing runs: for each item whether it would run, and after which others. */
export const planAnswer = (
  items: readonly PlannedItem[],
  waits: readonly Waits[],
  extensions: readonly ItemExtension[],
): Buffer => {
  const plan = items.map((item, index) => ({
    index,
    id: extensions[index]?.id,
    service: extensions[index]?.service,
    ...outlook(item, extensions[index]),
    after: waits[index],
  }))
  return Buffer.from(JSON.stringify({ plan }))
}
