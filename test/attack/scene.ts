import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { GatewayProcess } from '../support/gateway-process.ts'
import { type Origin, type OriginOptions, type Script, startOrigin } from '../support/origin.ts'
import type { Readings, Reads } from './attack-row.ts'
import type { HonestCommand } from './honest-process.ts'
import type { MemoryWatch } from './memory-watch.ts'

/** What an attack has around it. */
export type Scene = {
  readonly gateway: GatewayProcess
  /** Of its configuration, for rows that reload it. */
  readonly settings: Readonly<Record<string, unknown>>
  /** Of the public side: that of `gateway` unless the row listens with TLS. */
  readonly origin: string
  /** Origin of the upstream process (upstream-process.ts). */
  readonly upstream: string
  readonly memory: MemoryWatch
  /** What ends with the row: sockets, clients, and what `settings` has started. */
  readonly resources: Resources
  readonly seconds: number
}

/** Ends in reverse order. */
export class Resources {
  /** Scripted origins in this process, for rows that look at what arrives. */
  readonly origins: Origin[] = []
  readonly #ends: (() => unknown)[] = []
  readonly #sockets = new Set<Socket>()

  add(end: () => unknown): void {
    this.#ends.push(end)
  }

  socket<One extends Socket>(socket: One): One {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  async end(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    for (const end of this.#ends.reverse()) await end()
  }
}

/** A scripted origin that ends with the row. */
export const scriptedOrigin = async (
  { resources }: Pick<Scene, 'resources'>,
  script?: Script,
  options?: OriginOptions,
): Promise<Origin> => {
  const origin = await startOrigin(script, options)
  resources.origins.push(origin)
  resources.add(() => origin.close())
  return origin
}

/** The first one that the settings of the row have started. */
export const originOf = ({ resources }: Pick<Scene, 'resources'>): Origin => {
  const [origin] = resources.origins
  if (origin === undefined) throw new Error('the row has started no origin')
  return origin
}

const startChild = (name: string): ChildProcess =>
  fork(new URL(name, import.meta.url), { execArgv: ['--import', 'tsx'] })

const stopChild = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

export type Attacked = { readonly origin: string; readonly pid: number }

/** The upstream process and the honest reader, which serve all rows of a run. */
export type Neighbours = {
  readonly upstream: string
  /** Begins to read; the function ends it and tells what was seen. */
  read(gateway: Attacked, reads: Reads): () => Promise<Readings>
  end(): Promise<void>
}

export const startNeighbours = async (): Promise<Neighbours> => {
  const upstream = startChild('./upstream-process.ts')
  const honest = startChild('./honest-process.ts')
  const [port] = (await once(upstream, 'message')) as [number]
  const tell = (command: HonestCommand): void => {
    honest.send(command)
  }
  return {
    upstream: `http://127.0.0.1:${port}`,
    read: (gateway, reads) => {
      tell({ kind: 'begin', ...gateway, reads, direct: `http://127.0.0.1:${port}/direct` })
      return async () => {
        const response = once(honest, 'message') as Promise<[Readings]>
        tell({ kind: 'end' })
        return (await response)[0]
      }
    },
    end: async () => {
      await stopChild(honest)
      await stopChild(upstream)
    },
  }
}
