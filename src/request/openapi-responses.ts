import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { type ApiBundle, below, type Located, member, membersOf } from '../contracts/openapi/bundle.ts'
import { cutEndlessReferences } from '../contracts/openapi/endless-references.ts'
import { dialectOf } from '../contracts/openapi/load-document.ts'
import { locateOperations, responseFor } from '../contracts/openapi/operation.ts'
import { essence } from '../contracts/openapi/read-operation.ts'
import { createSchemaTranslator, type RequestSchema } from '../contracts/openapi/request-schema.ts'
import { createSchemaChecker } from './openapi/schema-checker.ts'
import { readExactJson } from './openapi/values.ts'

/** A JSON response of an upstream. */
export type ResponseSample = {
  /** Method and template. */
  readonly operation: string
  readonly status: number
  readonly contentType: string
  /** Content-Encoding; '' for none. */
  readonly coding: string
  readonly content: Uint8Array
}

/** How a response fits its description. Details repeat the document, never the response. */
export type ResponseCheck =
  | { readonly result: 'fits' | 'unchecked' }
  | { readonly result: 'undescribed' | 'differs'; readonly pointer: string; readonly detail: string }

const unchecked: ResponseCheck = { result: 'unchecked' }
const undescribed = (detail: string): ResponseCheck => ({ result: 'undescribed', pointer: '', detail })
const mostBytes = 4 * 1024 * 1024
const deepest = 200

const decoders: Readonly<Record<string, (content: Uint8Array, options: object) => Buffer>> = {
  '': (content) => Buffer.from(content),
  identity: (content) => Buffer.from(content),
  gzip: gunzipSync,
  br: brotliDecompressSync,
  deflate: inflateSync,
}

const decoded = ({ content, coding }: ResponseSample): Buffer | undefined => {
  try {
    return decoders[coding]?.(content, { maxOutputLength: mostBytes })
  } catch {
    return undefined
  }
}

/** The description of a media type, exact types before ranges. */
const mediaFor = (response: Located, contentType: string): Located | undefined => {
  const type = essence(contentType)
  const names = membersOf(member(response.node, 'content')).map(([name]) => name)
  const range = `${type.split('/', 1)[0]}/*`
  const name = [type, range, '*/*'].map((one) => names.find((other) => essence(other) === one)).find(Boolean)
  return name === undefined ? undefined : below(response, 'content', name)
}

const declaredNames = (schema: unknown, names: Set<string>, seen: Set<unknown>): void => {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return
  seen.add(schema)
  for (const [name] of membersOf(member(schema, 'properties'))) names.add(name)
  for (const inner of Object.values(schema)) declaredNames(inner, names, seen)
}

export const createResponseChecker = (
  bundle: ApiBundle,
): { check(sample: ResponseSample): ResponseCheck } => {
  const dialect = dialectOf(member(bundle.files[bundle.root], 'openapi')) ?? '3.1'
  const { translate, definitions } = createSchemaTranslator(bundle, dialect, 'response')
  const checker = createSchemaChecker(definitions)
  const operations = locateOperations(bundle)
  const translated = new Map<unknown, RequestSchema>()
  const names = new Set<string>()
  const seen = new Set<unknown>()
  const schemaOf = (located: Located): RequestSchema => {
    const known = translated.get(located.node)
    if (known !== undefined) return known
    const before = definitions.size
    const schema = translate(located)
    if (definitions.size > before) cutEndlessReferences(definitions)
    translated.set(located.node, schema)
    for (const one of [schema, ...definitions.values()]) declaredNames(one, names, seen)
    return schema
  }
  /** Names that the document does not declare are data of the upstream. */
  const shown = (pointer: string): string =>
    pointer
      .split('/')
      .map((step, index) =>
        index === 0 || names.has(step.replaceAll('~1', '/').replaceAll('~0', '~')) ? step : '*',
      )
      .join('/')

  const checkContent = (sample: ResponseSample, schema: Located): ResponseCheck => {
    const content = decoded(sample)
    if (schema.node === undefined || content === undefined) return unchecked
    const reading = readExactJson(content, { jsonDepth: deepest, hasStrictIntegers: false })
    if (reading.kind === 'refused') return { result: 'differs', pointer: '', detail: reading.detail }
    const wanted = schemaOf(schema)
    const fault = checker.check(wanted, reading.value, reading.exact)
    if (fault !== undefined) return { result: 'differs', pointer: shown(fault.pointer), detail: fault.detail }
    return checker.uncheckable(wanted) === undefined ? { result: 'fits' } : unchecked
  }
  return {
    check: (sample) => {
      const operation = operations.get(sample.operation)
      if (operation === undefined) return unchecked
      const response = responseFor(bundle, operation, sample.status)
      // Documents rarely describe failures of the server.
      if (response === undefined)
        return sample.status >= 500 ? unchecked : undescribed(`status ${sample.status} is not described`)
      if (membersOf(member(response.node, 'content')).length === 0) return unchecked
      const media = mediaFor(response, sample.contentType)
      return media === undefined
        ? undescribed('its media type is not described')
        : checkContent(sample, below(media, 'schema'))
    },
  }
}
