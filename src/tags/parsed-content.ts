/** Text of JSON that was parsed; `nothing` is no JSON. */
export type ParsedContent = { readonly kind: 'json'; readonly value: unknown } | { readonly kind: 'nothing' }

const nothing: ParsedContent = { kind: 'nothing' }

const parse = (content: Buffer): ParsedContent => {
  try {
    return { kind: 'json', value: JSON.parse(content.toString('utf8')) }
  } catch {
    return nothing
  }
}

let last: { readonly content: Buffer; readonly parsed: ParsedContent } | undefined

/**
 * What a content says. Of one that is about to be stored both its tags and whether it is readable are asked in one turn, and
 * parsing is most of what either costs: the second one to ask gets what the first one read, which is then let go.
 */
export const parsedContent = (content: Buffer): ParsedContent => {
  if (last?.content === content) {
    const { parsed } = last
    last = undefined
    return parsed
  }
  const parsed = parse(content)
  last = { content, parsed }
  return parsed
}
