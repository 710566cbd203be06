import { readPush } from '../../../src/wordpress/changes/read-changes.ts'
import { createSiteTagger } from '../../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../../src/wordpress/tags/tags.ts'
import type { Change } from './intake.ts'

const tagger = createSiteTagger({ service: 'blog', table: siteTags })

/** The tags under which a gateway stores a response with this value of Trellis-Tags. */
export const storedTags = (tags: string): ReadonlySet<string> => {
  const head = { status: 200, headers: [], content: Buffer.from('{}') }
  return new Set(tagger.storedTags(undefined, {}, { ...head, hints: { tags, maxAge: undefined } }))
}

/** The tags that a gateway drops for these changes of a blog; undefined: all that it has stored. */
export const droppedTags = (changes: readonly Change[], site = 1): readonly string[] | undefined => {
  const push = { incarnation: '0', site, sequence: 1, fingerprint: '', changes }
  return tagger.changedTags(readPush(Buffer.from(JSON.stringify(push))).changes)
}

/** Do these changes reach a response with this value of Trellis-Tags, as a gateway decides it? */
export const reaches = (changes: readonly Change[], tags: string, site = 1): boolean => {
  const stored = storedTags(tags)
  return droppedTags(changes, site)?.some((tag) => stored.has(tag)) ?? true
}
