import type { Duplex } from 'node:stream'
import type httpProxy from '@fastify/http-proxy'
import type { LimitsConfig } from '../config/config.ts'
import { addressGroup } from '../http/bounds/client-network.ts'
import { addCount } from '../http/bounds/counts.ts'
import type { Opener, Revocations } from './revocations.ts'

/** How a WebSocket ended, and why none was opened; also the values of a metric label. */
export const websocketOutcomes = [
  /** The client or the upstream has ended it. */
  'closed',
  /** A connection ended without a close frame. */
  'broken',
  /** limits.websockets.idleTimeout. */
  'idle',
  /** What allowed it has ended: the address, the key, the token or the service. */
  'revoked',
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

type HttpProxyOptions = Extract<Parameters<typeof httpProxy>[1], { websocket: true }>
type OnConnect = NonNullable<NonNullable<HttpProxyOptions['wsHooks']>['onConnect']>

/** One side of a WebSocket, as the library has it. */
export type WebSocket = Parameters<OnConnect>[1]

type WebSocketsOptions = {
  limits(): LimitsConfig['websockets']
  readonly revocations: Pick<Revocations, 'watch'>
  readonly report: (event: WebSocketEvent) => void
}

/** RFC 6455 §7.4.1. */
const goingAway = 1001
const policyViolation = 1008
const closeCode = (why: WebSocketOutcome): number => (why === 'revoked' ? policyViolation : goingAway)
const abnormal = 1006

/** @fastify/http-proxy sends without waiting: while more than this waits for one side, nothing is read from the other. */
const maxBufferedBytes = 256 * 1024
/** `ws` does not say when a peer has read. */
const pollIntervalMs = 5

const isFull = (to: WebSocket): boolean =>
  to.readyState === to.CONNECTING || (to.readyState === to.OPEN && to.bufferedAmount > maxBufferedBytes)

/** Stops reading from one side for as long as too much waits for the other. */
const pause = (from: WebSocket, to: WebSocket): void => {
  if (from.isPaused || !isFull(to)) return
  // What has been read already is sent on: each message adds a listener while the library connects.
  if (to.readyState === to.CONNECTING) to.setMaxListeners(0)
  from.pause()
  const poll = setInterval(() => {
    if (isFull(to)) return
    clearInterval(poll)
    from.resume()
  }, pollIntervalMs)
  poll.unref()
  from.once('close', () => clearInterval(poll))
}

/** Calls back when nothing has moved for the time; 0 = never. */
const whenIdle = (
  idleMs: number,
  movedAt: () => number,
  callback: () => void,
): NodeJS.Timeout | undefined => {
  if (idleMs === 0) return undefined
  const poll = (): void => {
    if (performance.now() - movedAt() >= idleMs) callback()
  }
  return setInterval(poll, Math.max(50, idleMs / 4)).unref()
}

/** The open WebSockets of the process, which outlive configurations. */
export const createWebSockets = ({ limits, revocations, report }: WebSocketsOptions) => {
  const byService = new Map<string, number>()
  const byClient = new Map<string, number>()
  const closers = new Set<(outcome: WebSocketOutcome) => void>()
  let isDraining = false
  const createCounted = (opener: Opener, group: string) => {
    const { service } = opener
    let outcome: WebSocketOutcome | undefined
    let movedAt = 0
    let isConnected = false
    const moved = (): void => {
      movedAt = performance.now()
    }
    /** A message, a ping or a pong was passed on. */
    const passed = (from: WebSocket, to: WebSocket): void => {
      moved()
      pause(from, to)
    }
    const end = (why: WebSocketOutcome): void => {
      addCount(byService, service, -1)
      addCount(byClient, group, -1)
      report({ kind: 'websocket-ended', service, outcome: why })
    }
    return {
      refused: () => end('refused'),
      /** Both have agreed: it is counted until both connections are closed, each of which ends the other. */
      opened: (client: Duplex, upstream: Duplex): void => {
        let open = 2
        const closed = (): void => {
          open -= 1
          if (open === 0) end(outcome ?? 'closed')
        }
        client.once('close', () => {
          // The library closes the other side only when it is open.
          if (!isConnected) upstream.destroy()
          closed()
        })
        upstream.once('close', closed)
      },
      /** @fastify/http-proxy has connected the two. */
      connected: (source: WebSocket, target: WebSocket): void => {
        isConnected = true
        moved()
        if (source.readyState === source.CLOSED) target.terminate()
        const close = (why: WebSocketOutcome): void => {
          outcome ??= why
          source.close(closeCode(why))
          target.close(closeCode(why))
        }
        const watch = whenIdle(
          limits().idleTimeoutMs,
          () => movedAt,
          () => close('idle'),
        )
        const stopWatching = revocations.watch(opener, 'websocket', () => close('revoked'))
        for (const [side, other] of [
          [source, target],
          [target, source],
        ] as const) {
          for (const frame of ['ping', 'pong']) side.on(frame, () => passed(side, other))
          side.once('close', (code: number) => {
            outcome ??= code === abnormal ? 'broken' : undefined
            clearInterval(watch)
            closers.delete(close)
            stopWatching()
          })
        }
        closers.add(close)
        if (isDraining) close('drained')
      },
      passed,
    }
  }

  return {
    /** Counts one before its handshake is sent to the upstream; undefined: too many are open. */
    count: (opener: Opener) => {
      const { service } = opener
      const { perService, perClient } = limits()
      const group = addressGroup(opener.address)
      if ((byService.get(service) ?? 0) >= perService || (byClient.get(group) ?? 0) >= perClient) {
        report({ kind: 'websocket-ended', service, outcome: 'too-many' })
        return undefined
      }
      addCount(byService, service, 1)
      addCount(byClient, group, 1)
      return createCounted(opener, group)
    },
    open: (): ReadonlyMap<string, number> => byService,
    drain: (): void => {
      isDraining = true
      for (const close of [...closers]) close('drained')
    },
  }
}

export type WebSockets = ReturnType<typeof createWebSockets>
export type CountedWebSocket = NonNullable<ReturnType<WebSockets['count']>>
