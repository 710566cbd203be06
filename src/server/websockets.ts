import type { Duplex } from 'node:stream'
import type { LimitsConfig } from '../config/config.ts'
import { addCount, addressGroup, createFairTurns } from '../http/bounds.ts'

/** How a WebSocket ended, and why none was opened; also the values of a metric label. */
export const websocketOutcomes = [
  /** The client or the upstream has ended it. */
  'closed',
  /** A connection broke. */
  'broken',
  /** limits.websockets.idleTimeout. */
  'idle',
  /** The gateway shuts down. */
  'drained',
  /** The upstream did not agree, or the handshake failed. */
  'refused',
  /** limits.websockets.perService and perClient. */
  'too-many',
] as const

export type WebSocketOutcome = (typeof websocketOutcomes)[number]

export type WebSocketEvent =
  | { readonly kind: 'websockets-configured'; readonly service: string }
  | { readonly kind: 'websocket-ended'; readonly service: string; readonly outcome: WebSocketOutcome }

/** 1001: the endpoint is going away (RFC 6455 §7.4.1). */
const goingAway = Buffer.from([0x88, 0x02, 0x03, 0xe9])
/** The same to a server: frames of a client are masked, here with zeros (RFC 6455 §5.3). */
const goingAwayMasked = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9])

/** A WebSocket that closes is cut when neither side has sent or read anything for this time. */
const closingMs = 2_000

type WebSocketsOptions = {
  limits(): LimitsConfig['websockets']
  readonly report: (event: WebSocketEvent) => void
}

/** The longest head of a frame: two octets, a length of eight, a mask of four (RFC 6455 §5.2). */
const longestHead = 14

const lengthOctets = (second: number): number => {
  const length = second & 0x7f
  return length === 127 ? 8 : length === 126 ? 2 : 0
}

const headLength = (second: number): number => 2 + lengthOctets(second) + (second >= 0x80 ? 4 : 0)

/** Of the frame whose head begins at the index. */
const payloadLength = (octets: Buffer, at: number): number => {
  const short = (octets[at + 1] as number) & 0x7f
  if (short < 126) return short
  return short === 126
    ? octets.readUInt16BE(at + 2)
    : octets.readUInt32BE(at + 2) * 2 ** 32 + octets.readUInt32BE(at + 6)
}

/** Finds where frames end in the octets of one direction of a WebSocket, without holding any of them but the head of a frame. */
class FrameEnds {
  readonly #head = Buffer.alloc(longestHead)
  #headBytes = 0
  /** Octets of the payload that are still to come. */
  #left = 0

  /** Has every frame that has begun ended? */
  get isBetween(): boolean {
    return this.#left === 0 && this.#headBytes === 0
  }

  /** Index behind the last frame that ends in the chunk; -1 when none does. */
  read(chunk: Buffer): number {
    let at = 0
    let end = -1
    while (at < chunk.length) {
      at = this.#left > 0 ? this.#skip(chunk, at) : this.#readHead(chunk, at)
      if (this.isBetween) end = at
    }
    return end
  }

  #skip(chunk: Buffer, at: number): number {
    const skipped = Math.min(this.#left, chunk.length - at)
    this.#left -= skipped
    return at + skipped
  }

  /** A peer can put thirty thousand heads into a chunk, so that only one whose end is not there yet is copied. */
  #readHead(chunk: Buffer, from: number): number {
    const second = this.#headBytes === 0 ? chunk[from + 1] : undefined
    const behind = second === undefined ? Number.POSITIVE_INFINITY : from + headLength(second)
    if (behind > chunk.length) return this.#copyHead(chunk, from)
    this.#left = payloadLength(chunk, from)
    return behind
  }

  #copyHead(chunk: Buffer, from: number): number {
    let at = from
    const wanted = (): number => (this.#headBytes < 2 ? 2 : headLength(this.#head[1] as number))
    while (at < chunk.length && this.#headBytes < wanted()) {
      this.#head[this.#headBytes] = chunk[at] as number
      this.#headBytes += 1
      at += 1
    }
    if (this.#headBytes === wanted() && this.#headBytes >= 2) {
      this.#left = payloadLength(this.#head, 0)
      this.#headBytes = 0
    }
    return at
  }
}

/** A chunk has some 64 KiB. Of all WebSockets together only a few are passed on in each turn of the event loop. */
const chunksPerTurn = 8

type Direction = {
  readonly from: Duplex
  readonly to: Duplex
  readonly closeFrame: Buffer
  /** Passes a chunk on when it is the turn of the client. */
  readonly inTurn: (work: () => void) => void
  readonly moved: () => void
  /** Its close frame is sent. */
  readonly closed: () => void
}

/** One direction: passes octets on as fast as the receiver reads, and can send a close frame between two frames as the last. */
const direct = ({ from, to, closeFrame, inTurn, moved, closed }: Direction) => {
  const frames = new FrameEnds()
  let state: 'open' | 'closing' | 'closed' = 'open'
  let isWaiting = false
  const end = (): void => {
    state = 'closed'
    if (to.writable) to.write(closeFrame)
    closed()
  }
  const passOn = (chunk: Buffer): void => {
    if (state === 'closed' || !to.writable) return
    moved()
    const lastEnd = frames.read(chunk)
    if (state === 'closing' && lastEnd !== -1) {
      to.write(chunk.subarray(0, lastEnd))
      end()
    } else to.write(chunk)
  }
  const pass = (): void => {
    isWaiting = false
    const chunk = from.read() as Buffer | null
    if (chunk === null) return
    passOn(chunk)
    // Node 26 reads one of several chunks, and emits no other `readable` for the rest.
    if (from.readableLength > 0) proceed()
  }
  const proceed = (): void => {
    // What is not read yet stays with the sender.
    if (isWaiting || to.writableNeedDrain) return
    isWaiting = true
    inTurn(pass)
  }
  from.on('readable', proceed)
  to.on('drain', () => {
    moved()
    proceed()
  })
  from.once('end', () => {
    to.end()
    state = 'closed'
  })
  return {
    isClosed: () => state === 'closed',
    /** At once where no frame is half sent, otherwise behind that frame. */
    close: () => {
      if (state !== 'open') return
      state = 'closing'
      if (frames.isBetween) end()
    },
  }
}

/**
 * The open WebSockets of the process, which outlive configurations. Their octets pass unread, except for the ends of frames: what
 * the two sides have agreed on (subprotocol, compression) is theirs, and a message of any length takes no memory here.
 */
export const createWebSockets = ({ limits, report }: WebSocketsOptions) => {
  const byService = new Map<string, number>()
  const byClient = new Map<string, number>()
  const joined = new Set<(outcome: WebSocketOutcome) => void>()
  let isDraining = false

  const turns = createFairTurns(chunksPerTurn)

  const join = (
    client: Duplex,
    upstream: Duplex,
    group: string,
    ended: (outcome: WebSocketOutcome) => void,
  ): void => {
    let outcome: WebSocketOutcome | undefined
    let movedAt = performance.now()
    let open = 2
    const moved = (): void => {
      movedAt = performance.now()
    }
    const inTurn = (work: () => void): void => turns.begin(group, work)
    // A server may drop a message that it is sending when the client ends its side: no side is ended before both have their frame.
    const closed = (): void => {
      if (!toClient.isClosed() || !toUpstream.isClosed()) return
      client.end()
      upstream.end()
    }
    const both = { inTurn, moved, closed }
    const toUpstream = direct({ from: client, to: upstream, closeFrame: goingAwayMasked, ...both })
    const toClient = direct({ from: upstream, to: client, closeFrame: goingAway, ...both })
    const cut = (): void => {
      client.destroy()
      upstream.destroy()
    }
    let later: NodeJS.Timeout | undefined
    const cutWhenStill = (): void => {
      const left = movedAt + closingMs - performance.now()
      if (left <= 0) cut()
      else later = setTimeout(cutWhenStill, left).unref()
    }
    const limitClosing = (): void => {
      if (later !== undefined) return
      moved()
      cutWhenStill()
    }
    const close = (why: WebSocketOutcome): void => {
      outcome ??= why
      toClient.close()
      toUpstream.close()
      limitClosing()
    }
    const { idleTimeoutMs } = limits()
    const watch =
      idleTimeoutMs === 0
        ? undefined
        : setInterval(
            () => {
              if (performance.now() - movedAt >= idleTimeoutMs) close('idle')
            },
            Math.max(50, idleTimeoutMs / 4),
          ).unref()
    const gone = (): void => {
      open -= 1
      if (open > 0) {
        // The other side has received an end, and gets time for its own.
        limitClosing()
        return
      }
      clearTimeout(later)
      clearInterval(watch)
      joined.delete(close)
      ended(outcome ?? 'closed')
    }
    for (const [side, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      side.on('error', () => {
        outcome ??= 'broken'
        other.destroy()
      })
      // Half a WebSocket is of no use, and would count until idleTimeout.
      side.once('end', limitClosing)
      side.once('close', () => {
        // Without an end the other side must not take what it has for complete.
        if (!side.readableEnded) other.destroy()
        gone()
      })
    }
    joined.add(close)
    if (client.destroyed || upstream.destroyed) cut()
    else if (isDraining) close('drained')
  }

  return {
    /** Counts one before its handshake is sent to the upstream; undefined: too many are open. */
    count: (service: string, address: string) => {
      const { perService, perClient } = limits()
      const group = addressGroup(address)
      if ((byService.get(service) ?? 0) >= perService || (byClient.get(group) ?? 0) >= perClient) {
        report({ kind: 'websocket-ended', service, outcome: 'too-many' })
        return undefined
      }
      addCount(byService, service, 1)
      addCount(byClient, group, 1)
      const end = (outcome: WebSocketOutcome): void => {
        addCount(byService, service, -1)
        addCount(byClient, group, -1)
        report({ kind: 'websocket-ended', service, outcome })
      }
      return {
        /** The handshake was not completed. */
        refused: () => end('refused'),
        /** Connects the two sides until one of them ends. */
        join: (client: Duplex, upstream: Duplex) => join(client, upstream, group, end),
      }
    },
    open: (): ReadonlyMap<string, number> => byService,
    /** Sends both sides of each a close frame. */
    drain: (): void => {
      isDraining = true
      for (const close of [...joined]) close('drained')
    },
  }
}

export type WebSockets = ReturnType<typeof createWebSockets>
