import type { ServerResponse } from 'node:http'
import { fieldValues, withoutFields } from '../http/fields.ts'
import type { Interim, ResponseHead } from '../http/message.ts'

/** An upstream could send them for ever. */
const mostInterim = 16

const notInHints: ReadonlySet<string> = new Set(['link', 'content-length', 'set-cookie'])

/** Several links may stand in one line; node:http wants each for itself. */
const linksOf = (head: ResponseHead): string[] =>
  fieldValues(head.fields, 'link').flatMap((line) => line.split(/,\s{0,8}(?=<)/))

const sendEarlyHints = (outgoing: ServerResponse, head: ResponseHead): void => {
  const rest = withoutFields(head.fields, notInHints)
  const hints: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < rest.length; i += 2) hints[rest[i] as string] = rest[i + 1] as string
  hints['link'] = linksOf(head)
  try {
    outgoing.writeEarlyHints(hints)
  } catch {
    // A link that node:http does not accept: hints are worth having, not worth an error.
  }
}

/**
 * Relays a 1xx (RFC 9110 §15.2). node:http can write 102 and 103 (the latter with at least one Link); others are dropped, and so is
 * everything for HTTP/1.0, which knows no interim responses, or after the answer.
 */
export const createInterim = (outgoing: ServerResponse): Interim => {
  let left = mostInterim
  return (head) => {
    const { req } = outgoing
    const takesNone = req.httpVersionMajor === 1 && req.httpVersionMinor === 0
    // Before its turn on the connection it would be written behind the head of the answer, as a part of the content.
    const waits = outgoing.socket === null
    if (left === 0 || waits || takesNone || outgoing.headersSent || outgoing.destroyed) return
    left -= 1
    if (head.status === 102) outgoing.writeProcessing()
    else if (head.status === 103) sendEarlyHints(outgoing, head)
  }
}
