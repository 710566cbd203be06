import { createHash } from 'node:crypto'

/** An entity tag (RFC 9110 §8.8.3); `opaque` keeps its quotes. */
type EntityTag = { readonly weak: boolean; readonly opaque: string }

/** What If-Match and If-None-Match carry: any current representation, or one of these. */
type EntityTagList = '*' | readonly EntityTag[]

// etagc: visible characters except the double quote, and obs-text (RFC 9110 §8.8.3).
const tagAt = /(W\/)?("[\x21\x23-\x7e\x80-\xff]*")/y

/** One entity tag that fills the whole value, or undefined. */
export const parseEntityTag = (value: string): EntityTag | undefined => {
  tagAt.lastIndex = 0
  const found = tagAt.exec(value)
  if (found === null || tagAt.lastIndex !== value.length) return undefined
  return { weak: found[1] !== undefined, opaque: found[2] ?? '' }
}

/** Members that are no entity tags are passed over: a mistake in one must not hide a match with another. */
const readList = (value: string): EntityTagList => {
  if (value.trim() === '*') return '*'
  const tags: EntityTag[] = []
  let i = 0
  while (i < value.length) {
    tagAt.lastIndex = i
    const found = tagAt.exec(value)
    if (found === null) {
      i += 1
      continue
    }
    tags.push({ weak: found[1] !== undefined, opaque: found[2] ?? '' })
    i = tagAt.lastIndex
  }
  return tags
}

let latest: { readonly value: string; readonly list: EntityTagList } = { value: '', list: [] }

/** Remembers the latest list, which may have thousands of tags: a hit compares it with each form of the stored response. */
export const parseEntityTagList = (value: string): EntityTagList => {
  if (latest.value !== value) latest = { value, list: readList(value) }
  return latest.list
}

/** Strong comparison (RFC 9110 §8.8.3.2): for ranges and If-Match. */
export const matchesStrongly = (a: EntityTag, b: EntityTag): boolean =>
  !a.weak && !b.weak && a.opaque === b.opaque

/** Weak comparison (RFC 9110 §8.8.3.2): for If-None-Match. */
export const matchesWeakly = (a: EntityTag, b: EntityTag): boolean => a.opaque === b.opaque

/** A strong tag made of the content alone: 144 bits of its SHA-256. */
export const contentEntityTag = (content: Buffer): string =>
  `"${createHash('sha256').update(content).digest('base64url').slice(0, 24)}"`

/** Between the tag of a response and the name of the coding that the gateway gave it. */
const mark = '~'

const codedTag = /^(".*)~(?:br|gzip|zstd)"$/
const decodedTag = /^(".*)~identity"$/

/** The tags that a tag of the gateway was made from: of the uncoded form, and of the upstream's coded one. */
const originsOf = (opaque: string): string[] => {
  const coded = codedTag.exec(opaque)?.[1]
  const uncoded = coded === undefined ? [] : [`${coded}"`]
  const decoded = decodedTag.exec(uncoded[0] ?? opaque)?.[1]
  return decoded === undefined ? uncoded : [...uncoded, `${decoded}"`]
}

/**
 * Entity tag of a form in another coding, or with its coding undone (`identity`). A strong tag must differ, since the bytes do (RFC 9110 §8.8.3.3); a weak one says the
 * same of both.
 */
export const tagOfCoded = (tag: string, coding: string): string => {
  const parsed = parseEntityTag(tag)
  return parsed === undefined || parsed.weak ? tag : `${parsed.opaque.slice(0, -1)}${mark}${coding}"`
}

/**
 * An If-Match or If-None-Match for a server that has no coded forms: the tag that such a form was made from
 * is added. Added and not put in its place, since a server's own tags may look the same.
 */
export const withUncodedTags = (list: string): string => {
  if (!list.includes(mark)) return list
  const tags = parseEntityTagList(list)
  if (tags === '*') return list
  return [list, ...new Set(tags.flatMap(({ opaque }) => originsOf(opaque)))].join(', ')
}
