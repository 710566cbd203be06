import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { Random } from '../support/random.ts'
import { Connection } from './connection.ts'
import type { Plan } from './plan.ts'
import { servers } from './replaced/undici.ts'
import {
  type Interface,
  type ItemState,
  items,
  type States,
  type Verb,
  type View,
  type Way,
} from './services/interface.ts'
import { createBatchResponder, namesInBatch } from './upstream-batch.ts'
import { world } from './world.ts'

/**
 * What happens to a write. `streamed`: each piece of its response says what it has changed so far, and it changes more before the end;
 * `broken`: the same, but it breaks off. `partial`: the end of its content never comes, and the program acts on what it has. `lost`: the
 * connection breaks after it was carried out, each time that it is sent; `repeated`: only the first time, and the second is refused;
 * `dropped`: it breaks before. `late`: the gateway has given up by then.
 */
export const writeFates = [
  'answered',
  'streamed',
  'broken',
  'partial',
  'failed',
  'refused',
  'lost',
  'repeated',
  'dropped',
  'late',
] as const
export type WriteFate = (typeof writeFates)[number]

/** What a write does, how it is sent, and what happens to it. */
export type WriteSpec = {
  readonly item: number
  readonly verb: Verb
  readonly way: Way
  readonly fate: WriteFate
}

export type Write = WriteSpec & {
  /** Time until it is carried out, within the time that its fate allows. */
  readonly share: number
  /** When it was first given to a connection. */
  sentAt: number
  /** The version that it has made so far; 0: it was not carried out. */
  version: number
  /** Is the item gone since? */
  isGone: boolean
  carriedOutAt: number
  /** The version that it had made when the gateway gave it up: what it does later is not acknowledged. */
  givenUp: number | undefined
}

const nothing = Buffer.from('{}')

/** The content of a request that was read before it was sent. */
const contentOf = (body: unknown): Buffer | undefined =>
  typeof body === 'string' ? Buffer.from(body) : Buffer.isBuffer(body) ? body : undefined

/** The items of services, each with a version, and lists of them. `changed` is called with each new version. */
export const createUpstream = (
  { settings: { totalMs }, upstreamSlowness }: Pick<Plan, 'settings' | 'upstreamSlowness'>,
  service: Interface,
  changed: (item: number, version: number) => void,
) => {
  const random: Random = world.randomFor('upstream')
  const states = new Map<number, ItemState>(items.map((item) => [item, { version: 0, isGone: false }]))
  /** The last version of an item that was one of something that is gone. */
  const goneVersions = new Map<number, number>()
  const writes = new Map<string, Write>()

  const change = (item: number, verb: Verb): ItemState => {
    const before = states.get(item) ?? { version: 0, isGone: false }
    const isGone = verb === 'delete' || (verb === 'save' && before.isGone && !service.savesAnew)
    const state = { version: before.version + 1, isGone }
    states.set(item, state)
    if (isGone) goneVersions.set(item, state.version)
    changed(item, state.version)
    return state
  }
  const statesOf = (shown: readonly number[]): States =>
    new Map([...states].filter(([item]) => shown.includes(item)))

  const respond = (
    connection: Connection,
    status: number,
    headers: readonly string[],
    content: Buffer,
  ): void => connection.head(status, headers, () => connection.withHead(content))

  /** `isSlow`: its content comes after the head, mostly whole. */
  const respondWithView = (
    connection: Connection,
    view: View,
    known: string | undefined,
    isSlow: boolean,
  ): void => {
    const shown = statesOf(view.items)
    const { status, headers, content } = view.rendered(shown)
    const tag = `"${[...shown].map(([item, { version }]) => `${item}:${version}`)}"`
    const head = status === 200 ? [...headers, 'ETag', tag] : headers
    if (status === 200 && known === tag) connection.head(304, head, () => connection.complete())
    else if (isSlow) {
      const isWhole = random() < 0.9
      connection.head(status, [...head, 'Content-Length', String(content.length)], () =>
        connection.piece(content.subarray(0, isWhole ? content.length : 3), () =>
          isWhole ? connection.complete() : connection.breaks(),
        ),
      )
    } else respond(connection, status, head, content)
  }
  const read = (connection: Connection, view: View | undefined, headers: readonly string[]): void => {
    // What it shows is read at one moment of the time that it takes.
    const chance = random()
    if (chance < 0.02) {
      connection.breaks()
      return
    }
    if (chance < 0.04) {
      respond(connection, chance < 0.03 ? 500 : 503, service.writeHeaders, nothing)
      return
    }
    if (view === undefined) {
      respond(connection, 404, [], nothing)
      return
    }
    respondWithView(connection, view, headerValue(headers, 'if-none-match'), chance < 0.15)
  }

  const carryOut = (write: Write): void => {
    Object.assign(write, change(write.item, write.verb))
    write.carriedOutAt = world.now
    if (world.isTraced) world.note(`upstream: ${write.verb}, item ${write.item} has version ${write.version}`)
  }
  const written = service.writeHeaders
  const respondWith = (connection: Connection, { status, content }: ReturnType<Interface['written']>): void =>
    respond(connection, status, written, content)
  /** Each piece comes after one more change; the end, or the break, after another one. */
  const respondInPieces = (write: Write, connection: Connection, left: number): void => {
    world.schedule(world.now + connection.delay(), undefined, 'upstream writes once more', () => {
      carryOut(write)
      if (left > 0)
        connection.piece(Buffer.from(`{"saved":${write.version}}`), () =>
          respondInPieces(write, connection, left - 1),
        )
      else if (write.fate === 'broken') connection.breaks()
      else connection.complete()
    })
  }
  /** However long it was on its way. */
  const carryOutLate = (write: Write): void => {
    const at = Math.max(world.now, write.sentAt + write.share * totalMs * 1.8)
    world.schedule(at, undefined, 'a late write', () => carryOut(write))
  }
  /** The server has the whole request. */
  const respondToWrite = (write: Write, connection: Connection): void => {
    switch (write.fate) {
      case 'answered':
        carryOut(write)
        respondWith(connection, service.written(write))
        return
      case 'streamed':
      case 'broken':
        carryOut(write)
        connection.head(200, written, () => respondInPieces(write, connection, 1 + Math.floor(random() * 3)))
        return
      case 'failed':
        carryOut(write)
        respond(connection, 500, written, nothing)
        return
      case 'refused':
        respond(connection, 400, [], nothing)
        return
      case 'lost':
        carryOut(write)
        connection.breaks()
        return
      case 'repeated':
        if (write.version > 0) {
          respond(connection, 400, [], nothing)
          return
        }
        carryOut(write)
        connection.breaks()
        return
      case 'dropped':
        connection.breaks()
        return
      case 'late':
        carryOutLate(write)
        return
      case 'partial':
        // Its end never comes.
        return
    }
  }

  const respondToBatch = createBatchResponder({ service, carryOut, carryOutLate })

  servers.serve = ({ method, path = '', headers = [], body }, handler) => {
    const lines = headers as readonly string[]
    const content = contentOf(body)
    const isBatch = method === 'POST' && path === service.batchTarget
    const own = isBatch ? namesInBatch(content) : [headerValue(lines, 'x-write') ?? '']
    const carried = own.flatMap((name) => writes.get(name) ?? [])
    const connection = new Connection(handler, random, upstreamSlowness, () => {
      for (const write of carried) write.givenUp = write.version
    })
    for (const write of carried) if (write.sentAt === 0) write.sentAt = world.now
    const [write] = carried
    connection.open(body, {
      piece: () => {
        if (write?.fate !== 'partial') return
        carryOut(write)
        connection.breaks()
      },
      whole: () => {
        if (isBatch) respondToBatch(carried, connection)
        else if (write === undefined) read(connection, service.viewOf({ target: path, content }), lines)
        else respondToWrite(write, connection)
      },
    })
  }

  return {
    change,
    /** The last version of an item that was one of something that is gone; -1: it never was. */
    goneVersion: (item: number): number => goneVersions.get(item) ?? -1,
    /** Registers a write before it is sent. */
    expect: (name: string, spec: WriteSpec): Write => {
      const write: Write = {
        ...{ ...spec, share: random(), sentAt: 0 },
        ...{ version: 0, isGone: false, carriedOutAt: 0, givenUp: undefined },
      }
      writes.set(name, write)
      return write
    },
  }
}

export type SimulatedUpstream = ReturnType<typeof createUpstream>
