import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type Clock, readClock } from '../../clock.ts'
import type { WriteReceipt, WriteReceipts } from '../../service/contract.ts'
import type { ReportedLease } from './change-feeds.ts'
import { keyOf } from './read-changes.ts'

/** The words in front keep these apart from the signatures of reports and polls, which begin with a method. */
const signed = (token: string, kind: 'ask' | 'statement', text: string): string =>
  createHmac('sha256', token).update(`${kind}\n${text}`).digest('hex')

const form = /^(nothing|own|rows ([0-9a-f.,]{1,1024})); hmac=([0-9a-f]{64})$/
const row = /^([0-9a-f]{1,64})\.(\d{1,18})\.([0-9a-f]{0,64})$/

/** The rows as `hasApplied` names them; undefined when one has another form. */
const rowsIn = (list: string): readonly string[] | undefined => {
  const rows = list.split(',').map((text) => {
    const [, incarnation, sequence, check = ''] = row.exec(text) ?? []
    return incarnation === undefined ? undefined : `${incarnation} ${sequence} ${check}`.trimEnd()
  })
  const isWhole = (names: readonly (string | undefined)[]): names is readonly string[] =>
    names.every((name) => name !== undefined)
  return isWhole(rows) ? rows : undefined
}

/** The write receipt in a Trellis-Statement header, if the token signed it for this request. */
const readReceipt = (token: string, nonce: string, value: string): WriteReceipt | undefined => {
  const [, text = '', list, hmac = ''] = form.exec(value) ?? []
  const right = signed(token, 'statement', `${nonce}\n${text}`)
  if (hmac.length !== right.length || !timingSafeEqual(Buffer.from(hmac), Buffer.from(right)))
    return undefined
  if (list === undefined) return text === 'own' ? { kind: 'own' } : { kind: 'nothing' }
  const rows = rowsIn(list)
  return rows === undefined ? undefined : { kind: 'rows', rows }
}

/** The companion of a service, which states what each write has changed. It is believed while its log is read. */
export const createWriteReceipts = (token: string, lease: ReportedLease, clock: Clock): WriteReceipts => {
  const isCurrent = (): boolean => lease.isCurrent(readClock(clock))
  return {
    key: keyOf(token),
    isCurrent,
    newNonce: () => {
      if (!isCurrent()) return undefined
      const nonce = randomBytes(16).toString('hex')
      return {
        key: keyOf(token),
        header: `${nonce}.${signed(token, 'ask', nonce)}`,
        read: (value) => (value === undefined || !isCurrent() ? undefined : readReceipt(token, nonce, value)),
      }
    },
    hasApplied: (rows) => isCurrent() && rows.every((row) => lease.hasApplied(row)),
  }
}
