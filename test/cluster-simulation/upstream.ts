import { Readable } from 'node:stream'
import { GatewayError } from '../../src/errors.ts'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import type { ForwardRequest } from '../../src/upstream/messages.ts'
import type { Random } from '../support/random.ts'
import { network } from './redis/network.ts'
import { setTimeout as startTimer } from './replaced/globals.ts'
import { currentProcess, type Process, world } from './world.ts'

/**
 * What happens to a write. `streamed`: each piece of its response says what it has changed so far, and it changes more before the end;
 * `broken`: the same, but it breaks off. `partial`: the end of its content never comes, and the program acts on what it has. `lost`: the
 * connection breaks after it was carried out; `dropped`: before. `late`: the gateway has given up by then.
 */
export const writeFates = [
  'answered',
  'streamed',
  'broken',
  'partial',
  'failed',
  'refused',
  'lost',
  'dropped',
  'late',
] as const
export type WriteFate = (typeof writeFates)[number]

export const items = [1, 2, 3, 4, 5] as const
export const itemPath = (item: number): string => `/items/${item}`
export const listPath = '/list'

/** Longest time of a request; a late write is carried out within twice this time. */
export const upstreamTotalMs = 400

type Write = {
  readonly item: number
  readonly fate: WriteFate
  /** Time until it is carried out, within the time that its fate allows. */
  readonly share: number
  /** The version that it has made so far; 0: it was not carried out. */
  version: number
  carriedOutAt: number
  /** The version that it had made when the gateway gave it up: what it does later is not acknowledged. */
  givenUp: number | undefined
}

/** What a client reads: the version of each item shown. */
export type Shown = Readonly<Record<string, number>>

/** Of the list only: a write of one item leaves the others stored. */
const groupsOf = (path: string): readonly string[] => (path === listPath ? ['Cache-Groups', '"items"'] : [])

const json = (content: Shown): Buffer => Buffer.from(JSON.stringify(content))

/** A service of some items, each with a version, and a list of all. `changed` is called with each new version. */
export const createUpstream = (slowness: number, changed: (item: number, version: number) => void) => {
  const random: Random = world.randomFor('upstream')
  const versions = new Map<number, number>(items.map((item) => [item, 0]))
  const writes = new Map<string, Write>()
  const delay = (): number => network.delay(random) + (random() < 0.3 ? random() * slowness : 0)

  const change = (item: number): number => {
    const version = (versions.get(item) ?? 0) + 1
    versions.set(item, version)
    changed(item, version)
    return version
  }
  const stateOf = (path: string): Shown | undefined => {
    if (path === listPath) return Object.fromEntries(versions)
    const item = items.find((one) => itemPath(one) === path)
    return item === undefined ? undefined : { [item]: versions.get(item) ?? 0 }
  }

  type Settle = {
    readonly done: (response: GatewayResponse) => void
    readonly failed: (error: Error) => void
  }

  const later = (ms: number, process: Process | undefined, kind: string, run: () => void): void => {
    world.schedule(world.now + ms, process, kind, run)
  }
  /** A content that arrives after its head. */
  const streamed = (process: Process, content: () => Buffer): Readable => {
    const stream = new Readable({ read: () => undefined })
    later(delay(), process, 'end of a response', () => {
      if (stream.destroyed) return
      stream.push(content())
      stream.push(null)
    })
    return stream
  }
  const broken = (): GatewayError =>
    new GatewayError('upstream_broken', { detail: 'the connection was reset' })

  const read = (request: ForwardRequest, process: Process, { done, failed }: Settle): void => {
    const state = stateOf(request.target)
    const response = (): void => {
      const chance = random()
      if (chance < 0.02) {
        failed(broken())
        return
      }
      if (chance < 0.04) {
        done({ status: 500, headers: ['Content-Type', 'application/json'], content: json({}) })
        return
      }
      if (state === undefined) {
        done({ status: 404, headers: [], content: json({}) })
        return
      }
      const tag = `"${JSON.stringify(state).replaceAll('"', '')}"`
      const headers = ['Content-Type', 'application/json', 'ETag', tag, ...groupsOf(request.target)]
      if (headerValue(request.headers, 'if-none-match') === tag) {
        done({ status: 304, headers, content: undefined })
        return
      }
      const content = json(state)
      done({ status: 200, headers, content: chance < 0.15 ? streamed(process, () => content) : content })
    }
    // What it shows is read at one moment of the time that it takes.
    later(delay(), process, 'response of upstream', response)
  }

  const carryOut = (write: Write): void => {
    write.version = change(write.item)
    write.carriedOutAt = world.now
    if (world.isTraced) world.note(`upstream: item ${write.item} has version ${write.version}`)
  }
  /** Each piece comes after one more change; the end, or the break, after another one. */
  const respondInPieces = (write: Write, process: Process, content: Readable, left: number): void => {
    later(delay(), undefined, 'upstream writes once more', () => {
      carryOut(write)
      later(delay(), process, left > 0 ? 'piece of a response' : 'end of a response', () => {
        if (content.destroyed) return
        if (left > 0) {
          content.push(json({ saved: write.version }))
          respondInPieces(write, process, content, left - 1)
        } else if (write.fate === 'broken') content.destroy(broken())
        else content.push(null)
      })
    })
  }
  const respondToWrite = (write: Write, process: Process, sentAt: number, { done, failed }: Settle): void => {
    const head = ['Content-Type', 'application/json', 'Cache-Group-Invalidation', '"items"']
    switch (write.fate) {
      case 'answered':
        carryOut(write)
        later(delay(), process, 'response of upstream', () =>
          done({ status: 200, headers: head, content: json({}) }),
        )
        return
      case 'streamed':
      case 'broken':
        carryOut(write)
        later(delay(), process, 'response of upstream', () => {
          const content = new Readable({ read: () => undefined })
          // Its process may have ended.
          content.on('error', () => undefined)
          done({ status: 200, headers: head, content })
          respondInPieces(write, process, content, 1 + Math.floor(random() * 3))
        })
        return
      case 'partial':
        carryOut(write)
        later(delay(), process, 'the content breaks off', () => failed(broken()))
        return
      case 'failed':
        carryOut(write)
        later(delay(), process, 'response of upstream', () =>
          done({ status: 500, headers: head, content: json({}) }),
        )
        return
      case 'refused':
        later(delay(), process, 'response of upstream', () =>
          done({ status: 400, headers: [], content: json({}) }),
        )
        return
      case 'lost':
        carryOut(write)
        later(delay(), process, 'connection of upstream breaks', () => failed(broken()))
        return
      case 'dropped':
        later(delay(), process, 'connection of upstream breaks', () => failed(broken()))
        return
      case 'late':
        // However long it was on its way.
        later(
          Math.max(0, sentAt + write.share * upstreamTotalMs * 1.8 - world.now),
          undefined,
          'a late write',
          () => carryOut(write),
        )
    }
  }

  const forward = (request: ForwardRequest): Promise<GatewayResponse> =>
    new Promise((resolve, reject) => {
      const process = currentProcess()
      const sentAt = world.now
      const write = writes.get(headerValue(request.headers, 'x-write') ?? '')
      if (write?.fate === 'partial') request.progress?.partlySent()
      else request.progress?.sent()
      let isOver = false
      const settle: Settle = {
        done: (response) => {
          if (isOver) return
          isOver = true
          timer.stop()
          resolve(response)
        },
        failed: (error) => {
          if (isOver) return
          isOver = true
          if (write !== undefined) write.givenUp = write.version
          timer.stop()
          reject(error)
        },
      }
      const timer = startTimer(() => settle.failed(new GatewayError('upstream_timeout')), upstreamTotalMs)
      request.signal.addEventListener('abort', () => settle.failed(new GatewayError('client_gone')))
      later(delay(), undefined, write === undefined ? 'upstream reads' : 'upstream writes', () => {
        if (write === undefined) read(request, process, settle)
        else respondToWrite(write, process, sentAt, settle)
      })
    })

  return {
    forward,
    change,
    /** Registers a write before it is sent. */
    expect: (name: string, item: number, fate: WriteFate): Write => {
      const write: Write = { item, fate, share: random(), version: 0, carriedOutAt: 0, givenUp: undefined }
      writes.set(name, write)
      return write
    },
  }
}

export type SimulatedUpstream = ReturnType<typeof createUpstream>
