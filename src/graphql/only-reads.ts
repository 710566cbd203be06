import { readDocument } from './document.ts'
import type { DocumentLimits } from './limits.ts'
import { type RequestReading, readGraphqlBody, readItem } from './request.ts'

/** What is read of documents that other services send: about as long to parse as the longest body to read. */
const limits: DocumentLimits = {
  maxDepth: 100,
  maxAliases: 5_000,
  maxTokens: 5_000,
  maxBytes: 64 * 1024,
  introspection: true,
}
const maxJsonDepth = 64
const maxOperations = 100

/** It is sent as it came, and parsers differ in where a comment ends. */
const hasOddComment = (document: string): boolean => document.includes('#') && /[^\t\n\r -~]/.test(document)

const isQuery = (reading: RequestReading): boolean => {
  if (reading.kind !== 'request' || reading.document === undefined || hasOddComment(reading.document))
    return false
  const document = readDocument(reading.document, limits)
  return document.kind === 'parsed' && document.operations.every(({ type }) => type === 'query')
}

/** Does a body in JSON ask for queries alone, whichever of its operations a server takes (GraphQL §2.3)? */
export const onlyReads = (content: Buffer): boolean => {
  const body = readGraphqlBody(content, maxJsonDepth)
  if (body.kind !== 'batch') return isQuery(body)
  const { items } = body
  return items.length > 0 && items.length <= maxOperations && items.every((item) => isQuery(readItem(item)))
}
