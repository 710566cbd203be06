/** Why a parsed request is refused: its end, its host or its version can be read in two ways. */
export type MessageFault = 'version' | 'host' | 'transfer-coding' | 'field-count' | 'target'

/** The message for the client. */
export const faultTexts: Readonly<Record<MessageFault, string>> = {
  version: 'Use HTTP/1.1 or HTTP/1.0.',
  host: 'One Host header with a valid host is required.',
  'transfer-coding': 'The only transfer coding accepted is chunked, once, in HTTP/1.1.',
  'field-count': 'There are too many headers.',
  target: 'The request target must be a path or an http URL.',
}

/** A request as the parser returns it. */
export type ParsedMessage = {
  readonly rawHeaders: readonly string[]
  readonly httpVersionMajor: number
  readonly httpVersionMinor: number
}

/** The result of checking the header lines once. */
export type MessageLook =
  | { readonly kind: 'fault'; readonly fault: MessageFault }
  | {
      readonly kind: 'sound'
      /** The client asks for another protocol on this connection (RFC 9110 §7.8). */
      readonly asksUpgrade: boolean
    }

/** node:http silently drops fields from the thousandth on, including those that frame the content. No client sends this many. */
const mostFields = 256

/** Host and port (RFC 9110 §7.2); no userinfo, no zone. */
export const authorityForm = /^(?:[\w.~-]{1,255}|\[[\dA-Fa-f:.]{2,45}\])(?::\d{0,5})?$/

const sound: MessageLook = { kind: 'sound', asksUpgrade: false }
const upgrading: MessageLook = { kind: 'sound', asksUpgrade: true }
const faulty = (fault: MessageFault): MessageLook => ({ kind: 'fault', fault })

/** Index of a field in the flat list of names and values, or -1. */
const indexOfField = (rawHeaders: readonly string[], wanted: string, from: number): number => {
  for (let i = from; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === wanted.length && (name === wanted || name.toLowerCase() === wanted)) return i
  }
  return -1
}

/** RFC 9112 §6.1: only chunked is supported, and HTTP/1.0 has no transfer codings. */
const hasGoodCoding = (rawHeaders: readonly string[], minorVersion: number): boolean => {
  const at = indexOfField(rawHeaders, 'transfer-encoding', 0)
  if (at === -1) return true
  if (minorVersion === 0 || indexOfField(rawHeaders, 'transfer-encoding', at + 2) !== -1) return false
  return rawHeaders[at + 1]?.toLowerCase() === 'chunked'
}

/** Checks each request once, and remembers the last valid Host, because clients repeat it. */
export const createMessageLook = (): ((message: ParsedMessage) => MessageLook) => {
  let goodHost: string | undefined
  const isGoodHost = (value: string): boolean => {
    if (value === goodHost) return true
    if (!authorityForm.test(value)) return false
    goodHost = value
    return true
  }
  /** RFC 9112 §3.2: exactly one in HTTP/1.1, at most one before. */
  const hasGoodHost = (rawHeaders: readonly string[], minorVersion: number): boolean => {
    const at = indexOfField(rawHeaders, 'host', 0)
    if (at === -1) return minorVersion === 0
    return isGoodHost(rawHeaders[at + 1] as string) && indexOfField(rawHeaders, 'host', at + 2) === -1
  }
  return ({ rawHeaders, httpVersionMajor, httpVersionMinor }) => {
    // RFC 9112 §2.3: only 1.0 and 1.1. The parser also accepts 0.9 and the text `HTTP/2.0`.
    if (httpVersionMajor !== 1) return faulty('version')
    if (rawHeaders.length > 2 * mostFields) return faulty('field-count')
    if (!hasGoodHost(rawHeaders, httpVersionMinor)) return faulty('host')
    if (!hasGoodCoding(rawHeaders, httpVersionMinor)) return faulty('transfer-coding')
    return indexOfField(rawHeaders, 'upgrade', 0) === -1 ? sound : upgrading
  }
}

/**
 * Authority and path of a target in absolute form, which must be accepted (RFC 9112 §3.2.2); undefined for every other target that
 * is not a path.
 */
export const absoluteForm = (
  target: string,
): { readonly authority: string; readonly path: string } | undefined => {
  const found = /^https?:\/\/([^/?#]*)(.*)$/i.exec(target)
  if (found === null || !authorityForm.test(found[1] as string)) return undefined
  const rest = found[2] as string
  return { authority: found[1] as string, path: rest.startsWith('/') ? rest : `/${rest}` }
}
