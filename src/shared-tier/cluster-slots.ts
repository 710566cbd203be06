const slots = 16_384

const isSlot = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < slots

/** A name and a port; no name where the node does not know it. */
const isNode = (value: unknown): boolean =>
  Array.isArray(value) && Number.isInteger(value[1]) && value[1] > 0 && value[1] < 65_536

/** How many slots a row of CLUSTER SLOTS names; undefined when it is none. */
const slotsIn = (row: unknown): number | undefined => {
  if (!Array.isArray(row)) return undefined
  const [first, last, ...nodes] = row as readonly unknown[]
  return isSlot(first) && isSlot(last) && first <= last && nodes.every(isNode) ? last - first + 1 : undefined
}

/**
 * What a node answers to CLUSTER. ioredis walks from the first slot of each row to its last one, whatever they are, where
 * nobody hears of an error. No slot is named twice.
 */
export const checkedSlots = (reply: unknown): unknown => {
  if (typeof reply === 'string') return reply
  let named = 0
  if (Array.isArray(reply)) for (const row of reply) named += slotsIn(row) ?? Number.NaN
  if (Array.isArray(reply) && named <= slots) return reply
  throw new Error('MALFORMED slots')
}
