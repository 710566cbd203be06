import { validateHeaderName, validateHeaderValue } from 'node:http'
import { type HeaderLines, hasHeader, headerValue, headerValues } from './headers/header-lines.ts'
import { ownText } from './retained.ts'

/** Longest content that is sent as text (server/send/send-response.ts): node:http writes up to 16 KiB at once, head and content together. */
export const longestText = 14 * 1024

/** A content in the form in which a small one is sent: Latin-1 gives its octets one to one. */
export type ContentText = { readonly of: Buffer; readonly latin1: string }

let last: ContentText | undefined

/** Makes the text of a content once for all that read it in a row: a site response is searched twice, parsed and sent. */
export const contentText = (content: Buffer): ContentText => {
  if (last?.of === content) return last
  const text = { of: content, latin1: content.toString('latin1') }
  if (content.length <= longestText) last = text
  return text
}

/** Header lines as they are written, checked: those of `begin`, the same object in many responses, and then `text`. */
export type HeadText = {
  readonly of: HeaderLines
  readonly begin: HeadText | undefined
  readonly text: string
}

export const wholeText = ({ begin, text }: HeadText): string =>
  begin === undefined ? text : begin.text + text

/** Headers that node:http decides for each response: whether the connection stays open, and where the content ends. */
const framing: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'trailer',
  'upgrade',
])

/**
 * Makes the text of lines that many responses share. `begin`: the text of its first lines. Undefined: node:http would add to them, or
 * refuse them.
 */
export const headText = (headers: HeaderLines, status: number, begin?: HeadText): HeadText | undefined => {
  if (begin === undefined) {
    if (hasHeader(headers, framing) || headerValue(headers, 'date') === undefined) return undefined
    if (status !== 304 && headerValues(headers, 'content-length').length !== 1) return undefined
  }
  let text = ''
  for (let i = begin?.of.length ?? 0; i < headers.length; i += 2) {
    const name = headers[i] as string
    const value = headers[i + 1] as string
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      return undefined
    }
    text += `${name}: ${value}\r\n`
  }
  return {
    of: headers,
    begin: undefined,
    text: begin === undefined ? ownText(text) : wholeText(begin) + text,
  }
}

export const withLines = (head: HeadText, headers: HeaderLines, text: string): HeadText =>
  head.begin === undefined
    ? { of: headers, begin: head, text }
    : { of: headers, begin: head.begin, text: head.text + text }
