import { atOnce } from '../src/http/bodies/turns.ts'
import { requestHeader } from '../src/http/headers/header-lines.ts'
import { isJsonObject } from '../src/http/json-text.ts'
import {
  type ApiBundle,
  below,
  dereferenced,
  type Located,
  member,
  membersOf,
} from '../src/openapi/document/bundle.ts'
import type { ApiContract } from '../src/openapi/document/load-document.ts'
import {
  locateOperations,
  operationKey,
  operationOf,
  responseFor,
} from '../src/openapi/document/operation.ts'
import { createOpenApiRequests } from '../src/openapi/requests/openapi-requests.ts'
import { sampleOf } from './document-sample.ts'
import {
  type EmbeddedReply,
  type EmbeddedSettings,
  type EmbeddedUpstream,
  type ReceivedRequest,
  serveEmbedded,
} from './embedded-server.ts'

type DocumentMockOptions = EmbeddedSettings & {
  /** Path in front of the paths of the document, without a trailing slash; '' or '/' for none. */
  readonly basePath: string
  readonly document: { readonly bundle: ApiBundle; readonly contract: ApiContract }
}

/** Preferences that choose a response (RFC 7240): `Prefer: code=404, example=none`. */
type Preferences = { readonly code: number | undefined; readonly example: string | undefined }

const preferencesOf = (field: string | undefined): Preferences => {
  const found = new Map<string, string>()
  for (const preference of (field ?? '').split(/[,;]/)) {
    const [, name = '', quotedValue, value] =
      /^\s*(code|example)\s*=\s*(?:"([^"]*)"|([^\s"]+))\s*$/i.exec(preference) ?? []
    if (name !== '' && !found.has(name.toLowerCase()))
      found.set(name.toLowerCase(), quotedValue ?? value ?? '')
  }
  const code = found.get('code') ?? ''
  return { code: /^[2-5]\d\d$/.test(code) ? Number(code) : undefined, example: found.get('example') }
}

const problem = (status: number, detail: string): EmbeddedReply => ({
  status,
  fields: { 'Content-Type': 'application/problem+json', Vary: 'Prefer' },
  content: Buffer.from(JSON.stringify({ status, detail })),
})

/** The status of the response without a preference: the lowest success, else that of `default`. */
const usualStatus = (operation: Located): number => {
  const names = membersOf(member(operation.node, 'responses')).map(([name]) => name)
  const exact = names.filter((name) => /^2\d\d$/.test(name)).map(Number)
  if (exact.length > 0) return Math.min(...exact)
  const others = names.filter((name) => /^[3-5]\d\d$/.test(name)).map(Number)
  const isGeneral = names.some((name) => /^2xx$/i.test(name) || name === 'default')
  return isGeneral || others.length === 0 ? 200 : Math.min(...others)
}

const isJson = (mediaType: string): boolean => /^application\/(?:[^;]+\+)?json(?:$|[;\s])/i.test(mediaType)

type Example = { readonly value: unknown }

/** The example of a media type: the named one, else `example`, else the first of `examples`. */
const exampleOf = (bundle: ApiBundle, media: Located, name: string | undefined): Example | undefined => {
  const examples = below(media, 'examples')
  const namedExample = (one: string): Example | undefined => {
    const example = dereferenced(bundle, below(examples, one))
    return isJsonObject(example?.node) && 'value' in example.node
      ? { value: example.node['value'] }
      : undefined
  }
  if (name !== undefined) return namedExample(name)
  if (isJsonObject(media.node) && 'example' in media.node) return { value: media.node['example'] }
  return membersOf(examples.node)
    .map(([one]) => namedExample(one))
    .find((one) => one !== undefined)
}

const contentOf = (mediaType: string, value: unknown): Buffer => {
  if (isJson(mediaType)) return Buffer.from(JSON.stringify(value) ?? 'null')
  return Buffer.from(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
}

const printableType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;[\x20-\x7e]*)?$/

const reply = (bundle: ApiBundle, operation: Located, { code, example }: Preferences): EmbeddedReply => {
  const status = code ?? usualStatus(operation)
  const response = responseFor(bundle, operation, status)
  if (code !== undefined && response === undefined)
    return problem(404, 'the document has no response with this code')
  const content = response === undefined ? [] : membersOf(member(response.node, 'content'))
  const [mediaType] = (content.find(([type]) => isJson(type)) ?? content[0] ?? []) as readonly [string?]
  if (response === undefined || mediaType === undefined || status === 204 || status === 304)
    return { status, fields: { Vary: 'Prefer' }, content: Buffer.alloc(0) }
  const media = below(response, 'content', mediaType)
  const found = exampleOf(bundle, media, example)
  if (example !== undefined && found === undefined)
    return problem(404, 'the document has no example with this name')
  const { value } = found ?? { value: sampleOf(bundle, below(media, 'schema')) }
  return {
    status,
    fields: {
      'Content-Type': printableType.test(mediaType) ? mediaType : 'application/octet-stream',
      Vary: 'Prefer',
    },
    content: contentOf(mediaType, value),
  }
}

/** Starts a server that answers each operation of a document with its examples, or with values made from its schemas. */
export const startDocumentMock = (options: DocumentMockOptions): Promise<EmbeddedUpstream> => {
  const { bundle, contract } = options.document
  const operations = locateOperations(bundle)
  const { find } = atOnce(
    createOpenApiRequests(contract, {
      limits: { queryParameters: 1_000, jsonDepth: 64 },
      unknownParameters: 'forward',
      trackingParameters: [],
    }),
  )
  const prefix = options.basePath.replace(/\/$/, '')
  const response = (request: ReceivedRequest): EmbeddedReply => {
    const [target = ''] = request.target.split('?', 1)
    const routeMatch = target.startsWith(prefix)
      ? find(request.method, target.slice(prefix.length))
      : undefined
    const operation = routeMatch?.kind === 'found' ? operationOf(routeMatch.endpoint) : undefined
    const located = operation && operations.get(operationKey(operation))
    return located === undefined
      ? problem(404, 'the document has no such operation')
      : reply(bundle, located, preferencesOf(requestHeader(request.fields, 'prefer')))
  }
  return serveEmbedded(response, options)
}
