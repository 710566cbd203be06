import type { Appended, LeaseRefusal, Noted, Push, Standing, Synced } from '../coherence/ledger.ts'

/** What a script said that is not what the scripts say. A member that took it for an answer would trust what nobody has told it. */
const malformed = (what: string): Error => new Error(`MALFORMED ${what}`)

/** Scripts write numbers as texts: an integer of Lua is one of 64 bits only as long as it is a text. */
const numberIn = (value: unknown, what: string): number => {
  const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number)) throw malformed(what)
  return number
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** An epoch, the name of a member: never empty, since that stands for none. */
const nameIn = (value: unknown, what: string): string => {
  if (typeof value !== 'string' || value === '') throw malformed(what)
  return value
}

const listIn = (value: unknown, length: number, what: string): readonly unknown[] => {
  if (!Array.isArray(value) || value.length !== length) throw malformed(what)
  return value
}

const rowsIn = (value: unknown, width: number, what: string): readonly (readonly string[])[] => {
  if (!isTexts(value) || value.length % width !== 0) throw malformed(what)
  return Array.from({ length: value.length / width }, (_, row) => value.slice(row * width, (row + 1) * width))
}

const standingsIn = (value: unknown): readonly Standing[] =>
  rowsIn(value, 3, 'members').map(([member, applied, beat]) => ({
    member: nameIn(member, 'member'),
    applied: numberIn(applied, 'position of a member'),
    beat: numberIn(beat, 'beat'),
  }))

const notesIn = (value: unknown): readonly Noted[] =>
  rowsIn(value, 2, 'notes').map(([text = '', seq]) => ({ text, seq: numberIn(seq, 'number of a note') }))

const isLease = (value: unknown): value is 'granted' | LeaseRefusal =>
  value === 'granted' || value === 'unproven' || value === 'member-silent' || value === 'young-ledger'

/** `now`: the server's time. */
export const readSynced = (reply: unknown): Synced & { readonly now: string } => {
  const [epoch, seq, floor, notes, members, lease, now] = listIn(reply, 7, 'answer to sync')
  if (!isLease(lease)) throw malformed('lease')
  const synced = {
    epoch: nameIn(epoch, 'epoch'),
    seq: numberIn(seq, 'number'),
    floor: numberIn(floor, 'floor'),
    notes: notesIn(notes),
    members: standingsIn(members),
    lease,
    now: String(numberIn(now, 'time')),
  }
  if (synced.floor > synced.seq || synced.notes.some((note) => note.seq > synced.seq)) {
    throw malformed('number')
  }
  return synced
}

export const readAppended = (reply: unknown): Appended => {
  const [epoch, seq, members] = listIn(reply, 3, 'answer to append')
  return { epoch: nameIn(epoch, 'epoch'), seq: numberIn(seq, 'number'), members: standingsIn(members) }
}

/** What a script says that has nothing to tell. */
export const readDone = (reply: unknown): void => {
  if (reply !== 1) throw malformed('answer')
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isNumber = (text: unknown): boolean => typeof text === 'string' && /^\d{1,15}$/.test(text)

/** What a channel carries; undefined when it is not what the scripts write: whoever may publish there may say anything. */
export const readPush = (channel: string, message: string): Push | undefined => {
  const content = parsed(message)
  if (!Array.isArray(content) || content.length !== 4 || !isTexts(content.slice(0, 3))) return undefined
  const [epoch, seq, name, last] = content as unknown as readonly [string, string, string, unknown]
  if (!isNumber(seq)) return undefined
  if (channel.endsWith('noted')) {
    return isTexts(last) ? { kind: 'noted', epoch, seq: Number(seq), writer: name, notes: last } : undefined
  }
  return isNumber(last)
    ? { kind: 'applied', epoch, seq: Number(seq), member: name, entries: Number(last) }
    : undefined
}
