import dns from 'node:dns'
import type { Socket } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { certificatePath, keyPair } from '../../support/certificates.ts'
import { startOrigin } from '../../support/origin.ts'
import type { Fault, Trouble } from './fault.ts'
import { good, goodOnce } from './good-response.ts'
import { startStoppableServer } from './stoppable-server.ts'
import { leadTo, startSwitchboard } from './switchboard.ts'

/** An upstream that is well until told otherwise. */
export type Stage = {
  readonly target: string
  /** More of the upstream's configuration. */
  readonly settings: Readonly<Record<string, unknown>>
  fail(): Promise<void> | void
  recover(): Promise<void> | void
  /** Request lines received so far, where HTTP got through. */
  received(): readonly string[]
  close(): Promise<void>
}

const certificate = (name: string): TlsOptions => keyPair(name)

const scripted = async ({ script, early }: Extract<Trouble, { kind: 'script' }>): Promise<Stage> => {
  const origin = await startOrigin(good, { respondsEarly: early === true })
  return {
    target: origin.origin,
    settings: {},
    fail: () => {
      origin.script = script
    },
    recover: () => {
      origin.script = good
    },
    received: () => origin.received.map(({ method, target }) => `${method} ${target}`),
    close: () => origin.close(),
  }
}

const belowHttp = async (
  kind: 'refused' | 'accept-reset' | 'accept-close' | 'accept-silent',
): Promise<Stage> => {
  const origin = await startOrigin(good)
  const board = await startSwitchboard(origin.port)
  const failures = {
    refused: () => board.hangUp(),
    'accept-reset': () => board.route((socket) => socket.resetAndDestroy()),
    'accept-close': () => board.route((socket) => socket.end()),
    'accept-silent': () => board.route((socket) => socket.pause()),
  }
  return {
    target: `http://127.0.0.1:${board.port}`,
    settings: {},
    fail: failures[kind],
    recover: async () => {
      board.route(leadTo(origin.port))
      if (kind === 'refused') await board.pickUp()
    },
    received: () => origin.received.map(({ method, target }) => `${method} ${target}`),
    close: async () => {
      await board.close()
      await origin.close()
    },
  }
}

const stoppable = async (dropsPackets: boolean): Promise<Stage> => {
  const server = await startStoppableServer(dropsPackets)
  return {
    target: `http://127.0.0.1:${server.port}`,
    settings: {},
    fail: server.stop,
    recover: server.proceed,
    received: () => [],
    close: server.close,
  }
}

const otherServer = async (server: Extract<Trouble, { kind: 'tls' }>['server']) => {
  switch (server) {
    case 'plain':
    case 'silent':
      return startOrigin()
    case 'old-version':
      return startOrigin(good, {
        tls: {
          ...certificate('good'),
          minVersion: 'TLSv1',
          maxVersion: 'TLSv1.1',
          ciphers: 'DEFAULT@SECLEVEL=0',
        },
      })
    default:
      return startOrigin(good, { tls: certificate(server === 'other-ca' ? 'client' : server) })
  }
}

const route = (server: Extract<Trouble, { kind: 'tls' }>['server'], port: number) => {
  if (server === 'silent') return (socket: Socket) => void socket.resume()
  if (server !== 'plain') return leadTo(port)
  return (socket: Socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
}

const secured = async ({ server }: Extract<Trouble, { kind: 'tls' }>): Promise<Stage> => {
  const origin = await startOrigin(good, { tls: certificate('good') })
  const other = await otherServer(server)
  const board = await startSwitchboard(origin.port)
  return {
    target: `https://127.0.0.1:${board.port}`,
    settings: { tls: { ca: `file:${certificatePath('ca.pem')}` } },
    fail: () => board.route(route(server, other.port)),
    recover: () => board.route(leadTo(origin.port)),
    received: () => other.received.map(({ method, target }) => `${method} ${target}`),
    close: async () => {
      await board.close()
      await other.close()
      await origin.close()
    },
  }
}

type Lookup = (name: string, options: object, callback: (...result: unknown[]) => void) => void

/** Names of the matrix and the results of their lookups; all other names are looked up normally. */
const names = new Map<string, 'here' | 'name-unknown' | 'name-silent'>()
/** Ends unanswered lookups, as the system does after some seconds. */
const silent = new Map<string, (() => void)[]>()

const failure = (code: string): Error => Object.assign(new Error(code), { code, syscall: 'getaddrinfo' })

/** Puts a name server for the names of the matrix in front of the real one; gives back what takes it away. */
export const installNames = (): (() => void) => {
  const real = dns.lookup
  const lookup: Lookup = (name, options, callback) => {
    const state = names.get(name)
    if (state === undefined) (real as unknown as Lookup)(name, options, callback)
    else if (state === 'name-unknown') callback(failure('ENOTFOUND'))
    else if (state === 'here') callback(null, [{ address: '127.0.0.1', family: 4 }])
    else silent.set(name, [...(silent.get(name) ?? []), () => callback(failure('EAI_AGAIN'))])
  }
  dns.lookup = lookup as unknown as typeof dns.lookup
  return () => {
    dns.lookup = real
  }
}

const named = async (kind: 'name-unknown' | 'name-silent'): Promise<Stage> => {
  const origin = await startOrigin(goodOnce)
  const name = `${kind}.upstream.test`
  names.set(name, 'here')
  return {
    target: `http://${name}:${origin.port}`,
    settings: {},
    fail: () => void names.set(name, kind),
    recover: () => {
      names.set(name, 'here')
      for (const end of silent.get(name) ?? []) end()
      silent.delete(name)
    },
    received: () => origin.received.map(({ method, target }) => `${method} ${target}`),
    close: () => origin.close(),
  }
}

/** Builds the upstream of one row. */
export const buildStage = ({ trouble }: Fault): Promise<Stage> => {
  switch (trouble.kind) {
    case 'script':
      return scripted(trouble)
    case 'dropped':
    case 'stopped':
      return stoppable(trouble.kind === 'dropped')
    case 'name-unknown':
    case 'name-silent':
      return named(trouble.kind)
    case 'tls':
      return secured(trouble)
    default:
      return belowHttp(trouble.kind)
  }
}
