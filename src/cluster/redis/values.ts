import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { isJsonObject, parsedJson } from '../../http/json-text.ts'

/** The kinds of signed values. Each kind has its own key, so that none passes for another. */
export type Purpose = 'entry' | 'note' | 'acknowledgement' | 'answer' | 'caller' | 'position'

/** Proves that an instance with the key wrote a value read from Redis. Without keys nothing is signed. */
export type Signatures = {
  readonly isSigning: boolean
  /** Joins the parts, signed together with the name under which they are stored. */
  sign(name: string, parts: readonly Buffer[]): Buffer
  /** The value that was signed under that name; undefined if the signature is wrong. Without a key every value is returned. */
  verified(name: string, bytes: Buffer): Buffer | undefined
  /** The same for texts. */
  signText(name: string, text: string): string
  verifiedText(name: string, text: string): string | undefined
}

const salt = 'trellis cache.shared.key'
const macBytes = 32
const mark = Buffer.from('TS02')
const textPattern = /^v:([\w-]{43}):/

/** The key of one purpose (RFC 5869): a leaked key does not reveal the others. */
export const subkey = (key: string, purpose: Purpose): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, purpose, macBytes))

/** The length separates a name from what follows it. */
const macOf = (key: Buffer, name: string, parts: readonly Buffer[]): Buffer => {
  const named = Buffer.from(name)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(named.length)
  const hmac = createHmac('sha256', key).update(length).update(named)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

const isMarked = (bytes: Buffer): boolean =>
  bytes.length >= mark.length && bytes.compare(mark, 0, 4, 0, 4) === 0

const unsigned: Signatures = {
  isSigning: false,
  sign: (_, parts) => Buffer.concat(parts),
  verified: (_, bytes) => (isMarked(bytes) ? undefined : bytes),
  signText: (_, text) => text,
  verifiedText: (_, text) => (textPattern.test(text) ? undefined : text),
}

/** The first key signs, all of them verify. */
export const createSignatures = (keys: readonly string[], purpose: Purpose): Signatures => {
  const [first, ...others] = keys.map((key) => subkey(key, purpose))
  if (first === undefined) return unsigned
  const isBy = (mac: Buffer, name: string, content: Buffer): boolean =>
    mac.length === macBytes &&
    [first, ...others].some((key) => timingSafeEqual(mac, macOf(key, name, [content])))
  return {
    isSigning: true,
    sign: (name, parts) => Buffer.concat([mark, macOf(first, name, parts), ...parts]),
    verified: (name, bytes) => {
      const begin = mark.length + macBytes
      if (bytes.length < begin || !isMarked(bytes)) return undefined
      const content = bytes.subarray(begin)
      return isBy(bytes.subarray(mark.length, begin), name, content) ? content : undefined
    },
    signText: (name, text) => `v:${macOf(first, name, [Buffer.from(text)]).toString('base64url')}:${text}`,
    verifiedText: (name, signed) => {
      const [head, mac] = textPattern.exec(signed) ?? []
      if (head === undefined || mac === undefined) return undefined
      const text = signed.slice(head.length)
      return isBy(Buffer.from(mac, 'base64url'), name, Buffer.from(text)) ? text : undefined
    },
  }
}

/** Raised when an entry has another form, or its tags another meaning. Entries of each version have their own keys. */
export const entryVersion = 6

/** The head before the content of an entry. */
export type EntryHead = {
  readonly version: typeof entryVersion
  /** In full: the key in the store is a digest. */
  readonly key: string
  readonly epoch: string
  readonly applied: number
  readonly tags: readonly string[]
  readonly varyKey: string
  readonly ageMs: number
  /** Time to live when it was stored: what is left of it gives its age by the store's clock. */
  readonly keptMs: number
  /** Time of storing by the instance's clock: a longer time to live cannot make the entry look younger. */
  readonly storedAt: number
  readonly facts: unknown
}

/** An entry, or the list of headers that select one. */
export type Entry =
  | { readonly kind: 'entry'; readonly head: EntryHead; readonly content: Buffer }
  | { readonly kind: 'selected'; readonly varyNames: readonly string[] }

const entryMark = 0x54453031
const selectedMark = 0x54563031
const markBytes = 8

/** Longest head: headers of a response and its tags are far shorter. */
const maxHeadBytes = 256 * 1024

const framed = (mark: number, head: unknown): Buffer => {
  const text = Buffer.from(JSON.stringify(head))
  const frame = Buffer.alloc(markBytes)
  frame.writeUInt32BE(mark, 0)
  frame.writeUInt32BE(text.length, 4)
  return Buffer.concat([frame, text])
}

/** In parts, so that a large content is copied once; undefined when the head is too long. */
export const encodeEntry = (head: EntryHead, content: Buffer): readonly Buffer[] | undefined => {
  const frame = framed(entryMark, head)
  return frame.length > maxHeadBytes ? undefined : [frame, content]
}

export const encodeSelected = (varyNames: readonly string[]): readonly Buffer[] => [
  framed(selectedMark, varyNames),
]

export const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')

const isAmount = (value: unknown): boolean =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER

const isHead = (value: unknown): value is EntryHead => {
  if (!isJsonObject(value)) return false
  const head = value as Record<keyof EntryHead, unknown>
  return (
    head.version === entryVersion &&
    [head.key, head.epoch, head.varyKey].every((header) => typeof header === 'string') &&
    isTexts(head.tags) &&
    [head.applied, head.ageMs, head.keptMs, head.storedAt].every(isAmount)
  )
}

/** Undefined unless it is complete and of this version. */
export const decodeEntry = (bytes: Buffer): Entry | undefined => {
  if (bytes.length < markBytes) return undefined
  const mark = bytes.readUInt32BE(0)
  const end = markBytes + bytes.readUInt32BE(4)
  if ((mark !== entryMark && mark !== selectedMark) || end > bytes.length || end > maxHeadBytes)
    return undefined
  const head = parsedJson(bytes.toString('utf8', markBytes, end))
  if (mark === selectedMark) {
    return isTexts(head) ? { kind: 'selected', varyNames: head } : undefined
  }
  return isHead(head) ? { kind: 'entry', head, content: bytes.subarray(end) } : undefined
}
