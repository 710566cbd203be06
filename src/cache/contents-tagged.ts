import type { MemoryStore } from './memory-store.ts'

/** Reading more of them, or longer ones, would cost more than it can spare; so would looking for them among all that carry the tag. */
const mostContents = 8
const mostLooks = 64
const longestContent = 65_536

/** Contents of a few complete stored responses with that tag, short ones only. */
export const contentsTagged = (store: MemoryStore, tag: string): readonly Buffer[] => {
  const contents: Buffer[] = []
  let looks = 0
  for (const { variants } of store.tagged(tag)) {
    for (const { status, extent, content } of variants) {
      if (status === 200 && extent === undefined && content.length <= longestContent) contents.push(content)
    }
    looks += 1
    if (contents.length >= mostContents || looks === mostLooks) break
  }
  return contents.slice(0, mostContents)
}
