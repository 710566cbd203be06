import type { BufferedFor, ByteBudget, Reservation } from '../http/byte-budget.ts'
import type { OverloadEvent } from './overload-events.ts'

export type BufferedBytesOptions = {
  /** In force; read each time, since a reload may change it. */
  mostBytes(): number
  /** Addresses that count as one client. */
  groupOf(address: string): string
  report(event: OverloadEvent): void
}

/** A reservation that can also take what is there already, room or not. */
type ForcedReservation = Reservation & { force(bytes: number): void }

/** All bytes that the process has buffered, stored responses apart. */
export type BufferedBytes = {
  readonly bytes: number
  readonly budget: ByteBudget
  /** For what has been made already, and cannot be refused any more. */
  forced(work: BufferedFor, client: string): ForcedReservation
}

/** One client may hold half of it: the others go on while it does. */
const shareOfClient = 0.5

/** Makes it with nothing buffered. */
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
