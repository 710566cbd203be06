import type { Push } from '../companion/intake.ts'
import { droppedTags, storedTags } from '../companion/reach.ts'

/** `blog/companion/q/s:post:publish` as `q/s:post:publish`. */
const readable = (tag: string): string => tag.replace(/^blog\/(?:companion\/)?/, '')

/** The tags by which the reported changes reach a response with this value of Trellis-Tags. */
export const whyDropped = (description: string, pushes: readonly Push[]): readonly string[] => {
  const reached = droppedTags(pushes.flatMap(({ changes }) => changes))
  if (reached === undefined) return ['everything was reported as changed']
  const stored = storedTags(description)
  return [...new Set(reached)].filter((tag) => stored.has(tag)).map(readable)
}
