import type { MemoryStore } from './memory-store.ts'

/** Reading more of them, or longer ones, would cost more than it can spare. */
const mostContents = 8
const longestContent = 65_536

/** Contents of a few complete stored responses with that tag, short ones only. */
export const contentsTagged = (store: MemoryStore, tag: string): readonly Buffer[] => {
  const contents: Buffer[] = []
  for (const key of store.keysTagged(tag)) {
    for (const { status, extent, content } of store.peek(key)) {
      if (status === 200 && extent === undefined && content.length <= longestContent) contents.push(content)
    }
    if (contents.length >= mostContents) break
  }
  return contents.slice(0, mostContents)
}
