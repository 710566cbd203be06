import { parseEntityTag, parseEntityTagList } from './entity-tags.ts'

/** Between the tag of a response and the name of the coding that the gateway gave it. */
const mark = '~'

const codedTag = /^(".*)~(?:br|gzip|zstd)"$/

/**
 * Entity tag of a coded form. A strong tag must differ, since the bytes do (RFC 9110 §8.8.3.3); a weak one says the
 * same of both.
 */
export const tagOfCoded = (tag: string, coding: string): string => {
  const parsed = parseEntityTag(tag)
  return parsed === undefined || parsed.weak ? tag : `${parsed.opaque.slice(0, -1)}${mark}${coding}"`
}

/**
 * An If-Match or If-None-Match for a server that knows nothing of coded forms: the tag that such a form was made from
 * is added. Added and not put in its place, since a server's own tags may look the same.
 */
export const withUncodedTags = (list: string): string => {
  if (!list.includes(mark)) return list
  const tags = parseEntityTagList(list)
  if (tags === '*') return list
  const uncoded = tags.map(({ opaque }) => codedTag.exec(opaque)?.[1]).filter((tag) => tag !== undefined)
  return [list, ...new Set(uncoded.map((tag) => `${tag}"`))].join(', ')
}
