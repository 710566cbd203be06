import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

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
