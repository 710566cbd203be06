import {
  closes,
  comma,
  type JsonText,
  openBrace,
  opens,
  quote,
  skipSpace,
  stringAt,
  stringEnd,
  valueEnd,
  visitValues,
} from '../../http/json-text.ts'

/** A value in the answer of another item: its id, and a JSON Pointer (RFC 6901) into `{"body": …, "status": …}`. */
export type Reference = { readonly id: string; readonly pointer: readonly string[] }

/** The items that the text of a request refers to; `malformed` when something looks like a reference and is not valid. */
type FoundReferences = readonly Reference[] | 'malformed' | 'too-deep'

/** Ids of items: they stand in references, so they have no character that means something there. */
export const itemIdPattern = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

const mostSegments = 16

/** How deep objects and lists may be nested in a body that has references. */
export const mostTemplateDepth = 32

/** Reads `id#/body/…`. */
export const parseReference = (text: string): Reference | undefined => {
  const [id = '', fragment = '', ...more] = text.split('#')
  const segments = fragment.split('/')
  const wellFormed = itemIdPattern.test(id) && more.length === 0 && segments[0] === ''
  if (!wellFormed || segments.length < 2 || segments.length > mostSegments + 1) return undefined
  // RFC 6901 §4: ~1 first, so that ~01 stands for ~1.
  const pointer = segments.slice(1).map((one) => one.replaceAll('~1', '/').replaceAll('~0', '~'))
  return { id, pointer }
}

/** A reference, and where its object stands in the text. */
type PlacedReference = { readonly from: number; readonly end: number; readonly text: string }

/**
 * The object at `from` if it is a reference: `$ref` with a string, and no other member. Of a repeated `$ref` the last one
 * counts. It reads no nested value, so that a caller that continues behind `from` reads no text more than twice.
 */
const referenceAt = (text: JsonText, from: number): PlacedReference | undefined => {
  for (let at = from; ; ) {
    at = skipSpace(text, at + 1)
    if (text.charCodeAt(at) !== quote) return undefined
    const nameEnd = stringEnd(text, at)
    if (stringAt(text, at, nameEnd) !== '$ref') return undefined
    const value = skipSpace(text, skipSpace(text, nameEnd) + 1)
    if (text.charCodeAt(value) !== quote) return undefined
    const valueEnds = stringEnd(text, value)
    at = skipSpace(text, valueEnds)
    if (text.charCodeAt(at) !== comma) return { from, end: at + 1, text: stringAt(text, value, valueEnds) }
  }
}

/** All that looks like a reference, in one pass, and how deep the text is nested. */
const scan = (text: JsonText): { readonly placed: readonly PlacedReference[]; readonly depth: number } => {
  const placed: PlacedReference[] = []
  let depth = 0
  let deepest = 0
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at)
    const reference = code === openBrace ? referenceAt(text, at) : undefined
    if (reference !== undefined) placed.push(reference)
    else if (opens(code)) depth += 1
    else if (closes(code)) depth -= 1
    deepest = Math.max(deepest, depth)
    at = reference?.end ?? (code === quote ? stringEnd(text, at) : at + 1)
  }
  return { placed, depth: deepest }
}

/** All references in a JSON text, which has been parsed before. */
export const referencesIn = (text: JsonText): FoundReferences => {
  const { placed, depth } = scan(text)
  const found: Reference[] = []
  for (const one of placed) {
    const reference = parseReference(one.text)
    if (reference === undefined) return 'malformed'
    found.push(reference)
  }
  return found.length > 0 && depth > mostTemplateDepth ? 'too-deep' : found
}

/** The text with each reference replaced by the text of a value; what stands between them stays as it was written. */
export const withValues = (text: JsonText, textOf: (reference: Reference) => JsonText): JsonText => {
  const pieces: string[] = []
  let at = 0
  for (const one of scan(text).placed) {
    const reference = parseReference(one.text)
    if (reference === undefined) continue
    pieces.push(text.slice(at, one.from), textOf(reference))
    at = one.end
  }
  return pieces.length === 0 ? text : `${pieces.join('')}${text.slice(at)}`
}

/** One step of the pointers into a text, and where the value stands that it leads to. */
type PointerStep = {
  readonly steps: Map<string, PointerStep>
  from: number
  end: number
  /** Where the object or list begins that the value was found in: of a repeated member only the last one counts. */
  within: number
}

const newStep = (): PointerStep => ({ steps: new Map(), from: -1, end: -1, within: -1 })

/** Notes where the value at `from` ends, and the same for the steps that lead on from it. */
const locate = (text: JsonText, from: number, step: PointerStep): number => {
  step.from = from
  const code = text.charCodeAt(from)
  if (step.steps.size === 0 || !opens(code)) {
    step.end = valueEnd(text, from)
    return step.end
  }
  const isObject = code === openBrace
  let index = 0
  step.end = visitValues(text, from, (at, name) => {
    const next = step.steps.get(isObject ? name : String(index++))
    if (next === undefined) return valueEnd(text, at)
    next.within = from
    return locate(text, at, next)
  })
  return step.end
}

/**
 * The texts that pointers lead to, found in one pass over a JSON text that has been parsed before, however many pointers there
 * are; the function gives undefined for a pointer that leads nowhere.
 */
export const valuesAt = (
  text: JsonText,
  pointers: readonly (readonly string[])[],
): ((pointer: readonly string[]) => JsonText | undefined) => {
  const root = newStep()
  for (const pointer of pointers) {
    let step = root
    for (const segment of pointer) {
      const next = step.steps.get(segment) ?? newStep()
      step.steps.set(segment, next)
      step = next
    }
  }
  locate(text, 0, root)
  return (pointer) => {
    let step = root
    for (const segment of pointer) {
      const next = step.steps.get(segment)
      if (next === undefined || next.within !== step.from) return undefined
      step = next
    }
    return text.slice(step.from, step.end)
  }
}

const placeholderPattern = /(\{[^{}]*\})/

/** A path in pieces: text, and references that are a whole segment each. */
export type PathTemplate = readonly (string | Reference)[]

/** Cuts `/posts/{new#/body/id}`; undefined when a reference stands where none can be. */
export const pathTemplate = (path: string): PathTemplate | undefined => {
  const pieces: (string | Reference)[] = []
  for (const piece of path.split(placeholderPattern)) {
    const reference = piece.startsWith('{') ? parseReference(piece.slice(1, -1)) : undefined
    pieces.push(reference ?? piece)
  }
  let inQuery = false
  const isWhole = pieces.every((piece, at) => {
    if (typeof piece === 'string') {
      inQuery ||= piece.includes('?')
      return true
    }
    const before = pieces[at - 1]
    const after = pieces[at + 1]
    const isFirstInSegment = typeof before === 'string' && before.endsWith('/')
    const isLastInSegment = typeof after === 'string' && (after === '' || /^[/?]/.test(after))
    return isFirstInSegment && isLastInSegment && !inQuery
  })
  return isWhole ? pieces : undefined
}

/** A value encoded as one path segment; undefined if it would be empty or mean another path. */
export const pathSegment = (valueText: string): string | undefined => {
  if (/^-?\d{1,20}$/.test(valueText)) return valueText
  if (!valueText.startsWith('"')) return undefined
  const text = JSON.parse(valueText) as string
  if (text === '' || text === '.' || text === '..' || text.length > 200) return undefined
  // A lone surrogate is no text that could be encoded.
  return /\p{Surrogate}/u.test(text) ? undefined : encodeURIComponent(text)
}
