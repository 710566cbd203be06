import { isJsonObject, parsedJson } from '../../http/json-text.ts'
/** The head before the content of an entry. Entries of another version are not read. */
export type EntryHead = {
  readonly version: 4
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

/** An entry, or the list of fields that select one. */
export type Entry =
  | { readonly kind: 'entry'; readonly head: EntryHead; readonly content: Buffer }
  | { readonly kind: 'selected'; readonly varyNames: readonly string[] }

const entryMark = 0x54453031
const selectedMark = 0x54563031
const markBytes = 8

/** Longest head: fields of a response and its tags are far shorter. */
const mostHeadBytes = 256 * 1024

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
  return frame.length > mostHeadBytes ? undefined : [frame, content]
}

export const encodeSelected = (varyNames: readonly string[]): readonly Buffer[] => [
  framed(selectedMark, varyNames),
]

export const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const isAmount = (value: unknown): boolean =>
  typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER

const isHead = (value: unknown): value is EntryHead => {
  if (!isJsonObject(value)) return false
  const head = value as Record<keyof EntryHead, unknown>
  return (
    head.version === 4 &&
    [head.key, head.epoch, head.varyKey].every((one) => typeof one === 'string') &&
    isTexts(head.tags) &&
    [head.applied, head.ageMs, head.keptMs, head.storedAt].every(isAmount)
  )
}

/** Undefined unless it is complete and of this version. */
export const decodeEntry = (bytes: Buffer): Entry | undefined => {
  if (bytes.length < markBytes) return undefined
  const mark = bytes.readUInt32BE(0)
  const end = markBytes + bytes.readUInt32BE(4)
  if ((mark !== entryMark && mark !== selectedMark) || end > bytes.length || end > mostHeadBytes)
    return undefined
  const head = parsedJson(bytes.toString('utf8', markBytes, end))
  if (mark === selectedMark) {
    return isTexts(head) ? { kind: 'selected', varyNames: head } : undefined
  }
  return isHead(head) ? { kind: 'entry', head, content: bytes.subarray(end) } : undefined
}
