/** Contents that are sent again and again, as text. */
export type SentTexts = {
  /** The octets one to one as latin1 text, from the second time on; undefined: send the bytes. */
  textOf(content: Buffer): string | undefined
}

/** StreamBase in Node writes a text at once from a buffer of 16 KiB on the stack; head and content must fit together. */
const longestText = 14 * 1024

/**
 * node:http joins a head with a text into one write, and sends a Buffer in a second one: a third of what a small hit costs.
 * Two generations stand in for an order of use, as in pipeline/target-memo.ts. A content that is sent once, as most
 * misses are, costs its place in the map and no text.
 */
export const createSentTexts = (mostBytes: number): SentTexts => {
  const perGeneration = mostBytes / 2
  let bytes = 0
  let young = new Map<Buffer, string | undefined>()
  let old = new Map<Buffer, string | undefined>()

  const keep = (content: Buffer, text: string | undefined): void => {
    bytes += content.length
    if (bytes > perGeneration) {
      old = young
      young = new Map()
      bytes = content.length
    }
    young.set(content, text)
  }

  return {
    textOf: (content) => {
      const known = young.get(content)
      if (known !== undefined) return known
      if (content.length > longestText) return undefined
      const sentBefore = young.has(content) || old.has(content)
      const text = sentBefore ? (old.get(content) ?? content.toString('latin1')) : undefined
      keep(content, text)
      return text
    },
  }
}
