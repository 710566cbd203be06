import { isJsonInPieces } from '../../http/bodies/json-syntax.ts'
import type { Pieces } from '../../http/bodies/turns.ts'
import type { HeaderLines } from '../../http/headers/header-lines.ts'
import { asciiJson } from '../../http/json-text.ts'
import type { ErrorShape, ItemRules } from '../../service/contract.ts'
import type { ItemError, ItemResponse, ItemResult } from '../item.ts'
import { itemError, shapedError } from '../item-errors.ts'
import type { PlannedItem } from '../order/plan-batch.ts'

/** Which headers of its response an item shows. */
type ShownHeaders = Pick<ItemRules, 'shownHeaders' | 'isGeneralLink'>

const headersJson = (headers: HeaderLines, { shownHeaders, isGeneralLink }: ShownHeaders): string => {
  const values = new Map<string, string>()
  for (let i = 0; i < headers.length; i += 2) {
    const lowerName = (headers[i] as string).toLowerCase()
    const before = values.get(lowerName)
    const value = headers[i + 1] as string
    values.set(lowerName, before === undefined ? value : `${before}, ${value}`)
  }
  if (isGeneralLink(values.get('link') ?? '')) values.delete('link')
  const members = shownHeaders.flatMap((name) => {
    const value = values.get(name.toLowerCase())
    return value === undefined ? [] : `"${name}":${asciiJson(value)}`
  })
  // The site contract writes an empty map as an empty list.
  return members.length === 0 ? '[]' : `{${members.join(',')}}`
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** One element of `responses`, in pieces that are joined once. */
type ResponsePart = readonly Buffer[]

const bodyKey = Buffer.from('{"body":')

const part = (body: Buffer, status: number, headers: string): ResponsePart => [
  bodyKey,
  body,
  Buffer.from(`,"status":${status},"headers":${headers}}`),
]

/** `{"body":…,"status":…,"headers":…}` of a response, its JSON copied byte for byte, so that no number changes. */
function* responsePart(
  { status, headers, content, isJson: isKnown }: ItemResponse,
  errors: ErrorShape,
  shown: ShownHeaders,
): Pieces<ResponsePart> {
  const hasMark = content.subarray(0, 3).equals(byteOrderMark)
  const text = hasMark ? content.subarray(3) : content
  if (text.length === 0) return part(Buffer.from('null'), status, headersJson(headers, shown))
  if (isKnown === true || (yield* isJsonInPieces(text)))
    return part(text, status, headersJson(headers, shown))
  return errorPart(shapedError(errors, itemError('not_json', status >= 400 ? status : undefined)), shown)
}

/** The same for an error that the gateway made. */
const errorPart = ({ status, body, headers }: ItemError, shown: ShownHeaders): ResponsePart =>
  part(Buffer.from(asciiJson(body), 'latin1'), status, headersJson(headers, shown))

/** Stands for a valid item in a batch that failed as a whole. */
const nullPart: ResponsePart = [Buffer.from('null')]

const opening = Buffer.from('{"responses":[')
const failedOpening = Buffer.from('{"failed":"validation","responses":[')
const comma = Buffer.from(',')
const closing = Buffer.from(']}')

/** The whole response; `failed` has no other value than this one, and is absent otherwise. */
const envelopeOf = (parts: readonly ResponsePart[], failed: 'validation' | undefined): Buffer => {
  const pieces: Buffer[] = [failed === undefined ? opening : failedOpening]
  for (const [index, part] of parts.entries()) {
    if (index > 0) pieces.push(comma)
    pieces.push(...part)
  }
  pieces.push(closing)
  return Buffer.concat(pieces)
}

/** How the items of a service are shown, and the shape of its errors. */
type ResponseOptions = { readonly errors: ErrorShape; readonly itemRules: ItemRules }

/** The response to a batch of which nothing ran, since an item is refused: no item shows headers (recorded: `"headers":[]`). */
export const validationEnvelope = (
  items: readonly PlannedItem[],
  { errors, itemRules }: ResponseOptions,
): Buffer => {
  const parts = items.map((item) =>
    item.kind === 'refused'
      ? errorPart({ ...shapedError(errors, item.error), headers: [] }, itemRules)
      : nullPart,
  )
  return envelopeOf(parts, 'validation')
}

/** The response to the whole batch. */
export function* envelopeInPieces(
  results: readonly ItemResult[],
  { errors, itemRules }: ResponseOptions,
): Pieces<Buffer> {
  const parts: ResponsePart[] = []
  for (const result of results) {
    parts.push(
      'content' in result
        ? yield* responsePart(result, errors, itemRules)
        : errorPart(shapedError(errors, result), itemRules),
    )
    yield
  }
  return envelopeOf(parts, undefined)
}
