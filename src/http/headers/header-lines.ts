/**
 * Headers (RFC 9110 §5). Responses keep theirs as one flat array of name, value, name, value …:
 * order and repeated lines survive, and a stored response is ready for `writeHead` without a rebuild.
 */
export type HeaderLines = readonly string[]

/** Request headers as node:http gives them: lower-case names, repeated lines already combined. */
export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>

/** RFC 9110 §5.1: names compare without regard to case. Most differ in length already. */
const isNamed = (name: string | undefined, wanted: string): boolean =>
  name !== undefined &&
  name.length === wanted.length &&
  (name === wanted || name.toLowerCase() === wanted.toLowerCase())

/** All values of one header, in order. */
export const headerValues = (lines: HeaderLines, name: string): string[] => {
  const values: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    if (isNamed(lines[i], name)) values.push(lines[i + 1] as string)
  }
  return values
}

/** The combined value of a header (RFC 9110 §5.3), or undefined when no line carries it. */
export const headerValue = (lines: HeaderLines, name: string): string | undefined => {
  let value: string | undefined
  for (let i = 0; i < lines.length; i += 2) {
    if (isNamed(lines[i], name)) value = value === undefined ? lines[i + 1] : `${value}, ${lines[i + 1]}`
  }
  return value
}

/** The combined value of a request header. node:http gives an object that inherits a `constructor`, and documents may declare such a header. */
export const requestHeader = (headers: RequestHeaders, name: string): string | undefined => {
  const value = headers[name]
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.join(', ') : undefined
}

const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):([^\0\r\n]{0,8192})$/

/** The headers of lines such as `Name: value`, combined as node:http does it (RFC 9110 §5.3, RFC 9113 §8.2.3); undefined when one is malformed. */
export const headersOfLines = (lines: readonly string[]): Record<string, string> | undefined => {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, written, padded] = headerLine.exec(line) ?? []
    if (written === undefined || padded === undefined) return undefined
    const value = padded.trim()
    const name = written.toLowerCase()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}${name === 'cookie' ? '; ' : ', '}${value}`)
  }
  return Object.fromEntries(headers)
}

/** Headers of a request that the gateway sends for itself: it reads an uncoded JSON text. */
export const ownJsonHeaders: readonly string[] = [
  ...['accept', 'application/json'],
  ...['accept-encoding', 'identity'],
  ...['user-agent', 'trellis'],
]

export const hasHeader = (lines: HeaderLines, names: ReadonlySet<string>): boolean => {
  for (let i = 0; i < lines.length; i += 2) {
    if (names.has((lines[i] as string).toLowerCase())) return true
  }
  return false
}

export const withoutHeaders = (lines: HeaderLines, names: ReadonlySet<string>): string[] => {
  const remaining: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string
    if (!names.has(name.toLowerCase())) remaining.push(name, lines[i + 1] as string)
  }
  return remaining
}

/** The lines with every line of one header replaced by a single new one, at the end. */
export const withHeader = (lines: HeaderLines, name: string, value: string): string[] => {
  const changed = withoutHeaders(lines, new Set([name.toLowerCase()]))
  changed.push(name, value)
  return changed
}

/** Headers that replace those of a response, and names of headers that are removed from it, in lower case. */
export type HeaderChanges = { readonly set: HeaderLines; readonly removed: ReadonlySet<string> }

/** The lines with the changes applied; `removed` includes the names in `set`. */
export const withChanges = (lines: HeaderLines, { set, removed }: HeaderChanges): string[] => {
  const changed = withoutHeaders(lines, removed)
  changed.push(...set)
  return changed
}

/** Lines as they are written; not checked. */
export const linesText = (lines: HeaderLines): string => {
  let text = ''
  for (let i = 0; i < lines.length; i += 2) text += `${lines[i]}: ${lines[i + 1]}\r\n`
  return text
}
