import type { OutgoingHttpHeaders } from 'node:http2'
import { type HeaderLines, withoutHeaders } from '../../http/headers/header-lines.ts'
import { memoize, memoizeByObject } from '../../http/memo.ts'
import type { HeadText } from '../../http/response-text.ts'

/** RFC 9113 §8.2.2: connection-specific headers make a message malformed. */
const ofConnection: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
])

/** RFC 9113 §8.2. */
const lowerCase = memoize((name) => name.toLowerCase())

/**
 * Lower-case names, and repeated lines joined (RFC 9110 §5.3): node:http2 throws at a second line of a single-value header, and an
 * upstream may send two. Only Set-Cookie keeps its lines.
 */
export const headersOf = (lines: HeaderLines, status: number): OutgoingHttpHeaders => {
  const headers = new Map<string, string | string[] | number>([[':status', status]])
  const cookies: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lowerCase(lines[i] as string)
    const value = lines[i + 1] as string
    const before = headers.get(name)
    if (name === 'set-cookie') cookies.push(value)
    else if (!ofConnection.has(name)) headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  if (cookies.length > 0) headers.set('set-cookie', cookies)
  return Object.fromEntries(headers)
}

/** Lines behind the prepared ones, by name as it is written and as it is sent. */
type NamesBehind = readonly { readonly written: string; readonly name: string }[]

/**
 * The headers of responses that begin with the same lines. Each gets a copy of the last ones with values of its own: V8 copies an
 * object in a hundredth of the time in which it adds names to a copy (Node 20).
 */
export class PreparedHeaders {
  readonly #begin: HeaderLines
  readonly #from: number
  readonly #removed: ReadonlySet<string>
  #behind: NamesBehind = []
  #headers: OutgoingHttpHeaders | undefined

  /** `begin`: what is sent of the first lines of each response, those before the index `from`. `removed` are not sent of those behind. */
  constructor(begin: HeaderLines, from: number, removed: ReadonlySet<string>) {
    this.#begin = begin
    this.#from = from
    this.#removed = removed
  }

  headersFor(lines: HeaderLines, status: number): OutgoingHttpHeaders {
    const copy = this.#copyFor(lines, status)
    if (copy !== undefined) return copy
    const behind = lines.slice(this.#from)
    const sentLines = [
      ...this.#begin,
      ...(this.#removed.size === 0 ? behind : withoutHeaders(behind, this.#removed)),
    ]
    const headers = headersOf(sentLines, status)
    this.#keep(headers, behind)
    return headers
  }

  /** Undefined: there are none yet, or of other names. */
  #copyFor(lines: HeaderLines, status: number): OutgoingHttpHeaders | undefined {
    const behind = this.#behind
    if (this.#headers === undefined || lines.length !== this.#from + 2 * behind.length) return undefined
    const headers = { ...this.#headers }
    headers[':status'] = status
    for (let i = 0, at = this.#from; i < behind.length; i += 1, at += 2) {
      const { written, name } = behind[i] as NamesBehind[number]
      if (lines[at] !== written) return undefined
      headers[name] = lines[at + 1] as string
    }
    return headers
  }

  /** Unless a line is not sent, or joined with another one. */
  #keep(headers: OutgoingHttpHeaders, behind: HeaderLines): void {
    const names = behind.flatMap((written, i) => (i % 2 === 0 ? [{ written, name: lowerCase(written) }] : []))
    this.#headers = names.every(({ name }, i) => headers[name] === behind[2 * i + 1])
      ? { ...headers }
      : undefined
    this.#behind = names
  }
}

const none: ReadonlySet<string> = new Set()
const preparedFor = memoizeByObject(({ of }: HeadText) => new PreparedHeaders(of, of.length, none))

/** The headers of checked lines; those that many responses begin with are prepared once. */
export const headersOfHead = ({ of, begin }: HeadText, status: number): OutgoingHttpHeaders =>
  begin === undefined ? headersOf(of, status) : preparedFor(begin).headersFor(of, status)
