import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { clientPreface, requestAndReset } from '../support/http2-peer.ts'
import { attacker, dial, dialHttp2, pick } from './clients.ts'
import type { Scene } from './scene.ts'

// Attackers that hold what they have got: they begin requests and do not end them, or do not read answers, and come again when they
// are cut off.

/** Statuses that attackers got, `cut` for connections that ended without one, `refused` for those that were not opened. */
export type Tally = Record<string, number>

export const count = (tally: Tally, what: string): void => {
  tally[what] = (tally[what] ?? 0) + 1
}

type Holding = {
  readonly sockets: number
  readonly addresses: readonly string[]
  readonly protocol?: 'h2'
  /** What one connection does, until it closes. */
  readonly hold: (socket: Socket, from: string) => () => void
}

const againAfterMs = 250

export const keepHolding = async (
  scene: Scene,
  signal: AbortSignal,
  tally: Tally,
  { sockets, addresses, protocol, hold }: Holding,
): Promise<void> => {
  const one = async (from: string): Promise<void> => {
    const socket = await dial(scene, from, protocol)
    const stop = hold(socket, from)
    const cut = (): void => void socket.destroy()
    signal.addEventListener('abort', cut, { once: true })
    if (signal.aborted) cut()
    await new Promise<void>((resolve) => socket.once('close', resolve))
    stop()
    signal.removeEventListener('abort', cut)
    count(tally, 'cut')
  }
  const keepOn = async (at: number): Promise<void> => {
    while (!signal.aborted) {
      await one(pick(addresses, at)).catch(() => {
        if (!signal.aborted) count(tally, 'refused')
      })
      await sleep(againAfterMs)
    }
  }
  await Promise.all(Array.from({ length: sockets }, (_, at) => keepOn(at)))
}

type Trickle = {
  readonly sockets: number
  readonly addresses: readonly string[]
  readonly path: string
  readonly type: string
  readonly everyMs?: number
  readonly length?: number
  /** Further header lines, each with its line end. */
  readonly headers?: (from: number) => string
}

/** Uploads that send three bytes and then one now and then. */
export const trickleUploads = async (scene: Scene, signal: AbortSignal, options: Trickle): Promise<Tally> => {
  const tally: Tally = {}
  const { path, type, length = 1_000_000, everyMs = 2_000 } = options
  let started = 0
  await keepHolding(scene, signal, tally, {
    ...options,
    hold: (socket) => {
      started += 1
      const more = options.headers?.(started) ?? ''
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n` +
          `Content-Disposition: attachment; filename="a.png"\r\n${more}\r\nabc`,
      )
      socket.on('data', (chunk) => {
        const status = /^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1'))?.[1]
        if (status !== undefined) count(tally, status)
        socket.destroy()
      })
      const timer = setInterval(() => socket.write('.'), everyMs)
      return () => clearInterval(timer)
    },
  })
  return tally
}

/** Requests whose responses are not read. */
export const leaveUnread = async (
  scene: Scene,
  signal: AbortSignal,
  options: { readonly sockets: number; readonly addresses: readonly string[]; readonly bytes: string },
): Promise<Tally> => {
  const tally: Tally = {}
  await keepHolding(scene, signal, tally, {
    ...options,
    hold: (socket) => {
      socket.pause()
      socket.write(options.bytes, 'latin1')
      // A connection that is reset is seen when it is written to.
      const timer = setInterval(() => socket.destroyed || socket.write(''), 1_000)
      return () => clearInterval(timer)
    },
  })
  return tally
}

/** Requests for something slow, whose connections go on asking. */
export const askSlowly = async (
  scene: Scene,
  signal: AbortSignal,
  options: { readonly sockets: number; readonly addresses: readonly string[]; readonly path: string },
): Promise<Tally> => {
  const tally: Tally = {}
  let number = 0
  await keepHolding(scene, signal, tally, {
    ...options,
    hold: (socket) => {
      const next = (): void => {
        number += 1
        socket.write(`GET ${options.path}?n=${number} HTTP/1.1\r\nHost: a\r\n\r\n`)
      }
      socket.on('data', (chunk) => {
        const status = /HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1'))?.[1]
        if (status === undefined) return
        count(tally, status)
        next()
      })
      next()
      return () => {}
    },
  })
  return tally
}

/** One HTTP/2 connection for each address, with streams whose content trickles. */
export const trickleStreams = async (
  scene: Scene,
  signal: AbortSignal,
  options: { readonly streams: number; readonly addresses: readonly string[]; readonly path: string },
): Promise<Tally> => {
  const tally: Tally = {}
  const one = async (from: string): Promise<void> => {
    const client = await dialHttp2(scene, from)
    const closed = new Promise<void>((resolve) => client.once('close', resolve))
    const open = (): void => {
      if (signal.aborted || client.destroyed || client.closed) return
      const stream = client.request({
        ':method': 'POST',
        ':path': options.path,
        'content-type': 'application/octet-stream',
        'content-length': '1000000',
      })
      stream.on('error', () => {})
      stream.on('response', (head) => count(tally, String(head[':status'])))
      stream.resume()
      stream.write('abc')
      const timer = setInterval(() => stream.destroyed || stream.write('.'), 2_000)
      stream.once('close', () => {
        clearInterval(timer)
        setTimeout(open, againAfterMs)
      })
    }
    for (let at = 0; at < options.streams; at += 1) open()
    signal.addEventListener('abort', () => client.destroy(), { once: true })
    await closed
    count(tally, 'cut')
  }
  const keepOn = async (from: string): Promise<void> => {
    while (!signal.aborted) {
      await one(from).catch(() => {})
      await sleep(againAfterMs)
    }
  }
  await Promise.all(options.addresses.map(keepOn))
  return tally
}

/**
 * Streams that are reset as soon as they are begun, on some connections that are made anew when they are ended. By hand: node:http2 does
 * not send streams that are reset at once.
 */
export const resetStreams = async (
  scene: Scene,
  signal: AbortSignal,
  options: { readonly connections: number; readonly addresses?: readonly string[]; readonly path: string },
): Promise<Tally> => {
  const tally: Tally = {}
  const { addresses = [attacker], connections, path } = options
  await keepHolding(scene, signal, tally, {
    sockets: connections,
    addresses,
    protocol: 'h2',
    hold: (socket) => {
      socket.write(clientPreface)
      socket.resume()
      let stream = 1
      const send = (): void => {
        while (!socket.destroyed && !socket.writableNeedDrain) {
          socket.write(requestAndReset(stream, `${path}?r=${stream}`))
          count(tally, 'reset')
          stream += 2
        }
      }
      socket.on('drain', send)
      send()
      return () => {}
    },
  })
  return tally
}
