import type { ValidationInput } from '../../contracts/validation.ts'
import { longestParameterName } from '../../http/php-names.ts'
import { isContainer } from '../canonical/php-array.ts'
import { parsePhpQuery } from '../canonical/php-query.ts'
import { mediaTypeOf, readJson } from './json-content.ts'
import {
  invalidJson,
  type Refusal,
  tooManyParameters,
  unreadQuery,
  unsupportedContentType,
} from './site-errors.ts'

const plus = 0x2b
const space = 0x20
const percent = 0x25
const firstBeyondAscii = 0x80
const digits = Buffer.from('0123456789abcdef')

/**
 * A form as ASCII text: other bytes become escapes, so that both are decoded in one way, and `+` becomes a space. Byte by byte:
 * patterns over a megabyte block the event loop for half a second.
 */
const formText = (content: Buffer): string => {
  let beyond = 0
  for (const byte of content) if (byte >= firstBeyondAscii) beyond += 1
  const text = Buffer.allocUnsafe(content.length + 2 * beyond)
  let at = 0
  for (const byte of content) {
    if (byte < firstBeyondAscii) {
      text[at++] = byte === plus ? space : byte
      continue
    }
    text[at++] = percent
    text[at++] = digits[byte >> 4] as number
    text[at++] = digits[byte & 15] as number
  }
  return text.toString('latin1', 0, at)
}

/** Parameters of the content by name: PHP treats JSON and forms alike. */
type ContentParameters = ReadonlyMap<string, unknown>

type SiteContent =
  | { readonly kind: 'parameters'; readonly parameters: ContentParameters }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

const empty: SiteContent = { kind: 'parameters', parameters: new Map() }

/** PHP's max_input_vars: it silently drops further parameters. */
const maxFormParameters = 1000

type IsDeclared = (name: string) => boolean

/** Only declared parameters: a megabyte can hold a hundred thousand other names. */
const declaredMembers = (object: object, isDeclared: IsDeclared): ContentParameters => {
  const parameters = new Map<string, unknown>()
  for (const name of Object.keys(object)) {
    if (isDeclared(name)) parameters.set(name, (object as Record<string, unknown>)[name])
  }
  return parameters
}

const jsonParameters = (content: Buffer, maxDepth: number, isDeclared: IsDeclared): SiteContent => {
  const reading = readJson(content, maxDepth)
  if (reading.kind === 'too-many-values') return { kind: 'refused', refusal: tooManyParameters() }
  if (reading.kind === 'refused')
    return { kind: 'refused', refusal: invalidJson(reading.code, reading.message) }
  // An array has no named members, and a scalar none at all: no parameters, no error.
  if (!isContainer(reading.value) || Array.isArray(reading.value)) return empty
  return { kind: 'parameters', parameters: declaredMembers(reading.value, isDeclared) }
}

const formParameters = (content: Buffer): SiteContent => {
  const form = parsePhpQuery(formText(content), maxFormParameters, longestParameterName)
  return form.kind === 'read'
    ? { kind: 'parameters', parameters: form.parameters }
    : { kind: 'refused', refusal: unreadQuery(form.kind) }
}

/** Reads the parameters in the content. Content of GET and HEAD means nothing (RFC 9110 §9.3.1) and is not read. */
export const readSiteContent = (
  input: ValidationInput,
  maxDepth: number,
  isDeclared: IsDeclared,
): SiteContent => {
  const { content } = input
  if (content === undefined || content.length === 0 || input.method === 'GET' || input.method === 'HEAD')
    return empty
  switch (mediaTypeOf(input.contentType)) {
    case 'json':
      return jsonParameters(content, maxDepth, isDeclared)
    case 'form':
      return formParameters(content)
    case 'other':
      // WordPress ignores text/plain and guesses the type of content without one: neither does what the client meant.
      return input.endpoint.acceptsUploads === true
        ? empty
        : { kind: 'refused', refusal: unsupportedContentType() }
  }
}
