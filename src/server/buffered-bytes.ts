import type { BufferedFor, ByteBudget, Reservation } from '../http/bounds/byte-budget.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { addCount } from '../http/bounds/counts.ts'
import type { OverloadEvent } from './overload.ts'

export type BufferedBytesOptions = {
  /** The configured bound; read each time, since a reload may change it. */
  maxBytes(): number
  report(event: OverloadEvent): void
}

/** A reservation that can also exceed the bound for bytes that exist already. */
export type ForcedReservation = Reservation & { force(bytes: number): void }

/** One client may hold half of what the others leave, so that each newcomer gets some, as with slots (upstream/send/slots.ts). */
const shareOfClient = 0.5

/** Counts all bytes that the process has buffered, except stored responses. */
export const createBufferedBytes = (options: BufferedBytesOptions) => {
  const byClient = new Map<string, number>()
  let total = 0

  const add = (client: string, bytes: number): void => {
    total += bytes
    addCount(byClient, client, bytes)
  }
  const hasRoom = (client: string, bytes: number): boolean => {
    const clientBytes = byClient.get(client) ?? 0
    return clientBytes + bytes <= (options.maxBytes() - (total - clientBytes)) * shareOfClient
  }
  const forced = (work: BufferedFor, address: string): ForcedReservation => {
    const client = addressGroup(address)
    let bufferedBytes = 0
    let isOver = false
    const take = (bytes: number): void => {
      bufferedBytes += bytes
      add(client, bytes)
    }
    const shrink = (bytes: number): void => {
      const back = Math.min(bytes, bufferedBytes)
      bufferedBytes -= back
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
        shrink(bufferedBytes)
      },
    }
  }
  return {
    get bytes(): number {
      return total
    },
    budget: forced as ByteBudget,
    /** Reserves bytes that exist already and can no longer be refused. */
    forced,
  }
}

export type BufferedBytes = ReturnType<typeof createBufferedBytes>
