import type { BufferedFor, ByteBudget, Reservation } from '../http/bounds.ts'
import type { OverloadEvent } from './overload.ts'

export type BufferedBytesOptions = {
  /** The configured bound; read each time, since a reload may change it. */
  mostBytes(): number
  /** Addresses that count as one client. */
  groupOf(address: string): string
  report(event: OverloadEvent): void
}

/** A reservation that can also exceed the bound for bytes that exist already. */
type ForcedReservation = Reservation & { force(bytes: number): void }

/** Counts all bytes that the process has buffered, except stored responses. */
export type BufferedBytes = {
  readonly bytes: number
  readonly budget: ByteBudget
  /** Reserves bytes that exist already and can no longer be refused. */
  forced(work: BufferedFor, client: string): ForcedReservation
}

/** One client may hold half of the budget; the rest is left to the others. */
const shareOfClient = 0.5

/** Creates an empty budget. */
export const createBufferedBytes = (options: BufferedBytesOptions): BufferedBytes => {
  const byClient = new Map<string, number>()
  let total = 0

  const add = (client: string, bytes: number): void => {
    total += bytes
    const held = (byClient.get(client) ?? 0) + bytes
    if (held === 0) byClient.delete(client)
    else byClient.set(client, held)
  }
  const hasRoom = (client: string, bytes: number): boolean => {
    const most = options.mostBytes()
    return total + bytes <= most && (byClient.get(client) ?? 0) + bytes <= most * shareOfClient
  }
  const forced = (work: BufferedFor, address: string): ForcedReservation => {
    const client = options.groupOf(address)
    let held = 0
    let isOver = false
    const take = (bytes: number): void => {
      held += bytes
      add(client, bytes)
    }
    const shrink = (bytes: number): void => {
      const back = Math.min(bytes, held)
      held -= back
      if (back > 0) add(client, -back)
    }
    return {
      reserve: (bytes) => {
        if (isOver) return false
        if (hasRoom(client, bytes)) {
          take(bytes)
          return true
        }
        options.report({ kind: 'buffer-refused', work })
        return false
      },
      force: take,
      shrink,
      release: () => {
        isOver = true
        shrink(held)
      },
    }
  }
  return {
    get bytes() {
      return total
    },
    budget: forced,
    forced,
  }
}
