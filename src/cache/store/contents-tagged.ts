import type { MemoryStore } from './memory-store.ts'

/** To read more of them, or longer ones, or to search more entries, would cost more than it can spare. */
const maxContents = 8

const maxSearched = 64

const longestContent = 65_536

/** Contents of a few short stored responses with the tag. */
export const contentsTagged = (store: Pick<MemoryStore, 'withTag'>, tag: string): readonly Buffer[] => {
  const contents: Buffer[] = []
  let searched = 0
  for (const { variants } of store.withTag(tag)) {
    for (const { status, content } of variants) {
      if (status === 200 && content.length <= longestContent) contents.push(content)
    }
    searched += 1
    if (contents.length >= maxContents || searched === maxSearched) break
  }
  return contents.slice(0, maxContents)
}
