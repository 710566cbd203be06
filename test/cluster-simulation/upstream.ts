import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { Random } from '../support/random.ts'
import { Connection } from './connection.ts'
import { type Interface, items, type Shown } from './interfaces.ts'
import type { Plan } from './plan.ts'
import { servers } from './replaced/undici.ts'
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

type Write = {
  readonly item: number
  readonly fate: WriteFate
  /** Time until it is carried out, within the time that its fate allows. */
  readonly share: number
  /** When it was first given to a connection. */
  sentAt: number
  /** The version that it has made so far; 0: it was not carried out. */
  version: number
  carriedOutAt: number
  /** The version that it had made when the gateway gave it up: what it does later is not acknowledged. */
  givenUp: number | undefined
}

const nothing = Buffer.from('{}')

/** A service of some items, each with a version, and a list of all. `changed` is called with each new version. */
export const createUpstream = (
  { settings: { totalMs }, upstreamSlowness }: Pick<Plan, 'settings' | 'upstreamSlowness'>,
  service: Interface,
  changed: (item: number, version: number) => void,
) => {
  const random: Random = world.randomFor('upstream')
  const versions = new Map<number, number>(items.map((item) => [item, 0]))
  const writes = new Map<string, Write>()

  const change = (item: number): number => {
    const version = (versions.get(item) ?? 0) + 1
    versions.set(item, version)
    changed(item, version)
    return version
  }
  const stateOf = (path: string): Shown | undefined => {
    const shown = service.itemsAt(path)
    if (shown === undefined || shown.length === 0) return undefined
    return Object.fromEntries(shown.map((item) => [item, versions.get(item) ?? 0]))
  }

  const respond = (
    connection: Connection,
    status: number,
    headers: readonly string[],
    content: Buffer,
  ): void => connection.head(status, headers, () => connection.withHead(content))

  const read = (connection: Connection, path: string, headers: readonly string[]): void => {
    const state = stateOf(path)
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
    if (state === undefined) {
      respond(connection, 404, [], nothing)
      return
    }
    const tag = `"${JSON.stringify(state).replaceAll('"', '')}"`
    const head = [...service.readHeaders(path), 'ETag', tag]
    const content = service.content(path, state)
    if (headerValue(headers, 'if-none-match') === tag) connection.head(304, head, () => connection.complete())
    else if (chance < 0.15) {
      const isWhole = random() < 0.9
      connection.head(200, [...head, 'Content-Length', String(content.length)], () =>
        connection.piece(content.subarray(0, isWhole ? content.length : 3), () =>
          isWhole ? connection.complete() : connection.breaks(),
        ),
      )
    } else respond(connection, 200, head, content)
  }

  const carryOut = (write: Write): void => {
    write.version = change(write.item)
    write.carriedOutAt = world.now
    if (world.isTraced) world.note(`upstream: item ${write.item} has version ${write.version}`)
  }
  const written = service.writeHeaders
  /** What a write made, as its response shows it. */
  const result = ({ item, version }: Write): Buffer =>
    service.content(service.item(item).targets[0] ?? '', { [item]: version })
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
  /** The server has the whole request. */
  const respondToWrite = (write: Write, connection: Connection): void => {
    switch (write.fate) {
      case 'answered':
        carryOut(write)
        respond(connection, 200, written, result(write))
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
        // However long it was on its way.
        world.schedule(
          Math.max(world.now, write.sentAt + write.share * totalMs * 1.8),
          undefined,
          'a late write',
          () => carryOut(write),
        )
        return
      case 'partial':
        // Its end never comes.
        return
    }
  }

  servers.serve = ({ path = '', headers = [], body }, handler) => {
    const lines = headers as readonly string[]
    const write = writes.get(headerValue(lines, 'x-write') ?? '')
    const connection = new Connection(handler, random, upstreamSlowness, () => {
      if (write !== undefined) write.givenUp = write.version
    })
    if (write !== undefined && write.sentAt === 0) write.sentAt = world.now
    connection.open(body, {
      piece: () => {
        if (write?.fate !== 'partial') return
        carryOut(write)
        connection.breaks()
      },
      whole: () => (write === undefined ? read(connection, path, lines) : respondToWrite(write, connection)),
    })
  }

  return {
    change,
    /** Registers a write before it is sent. */
    expect: (name: string, item: number, fate: WriteFate): Write => {
      const write: Write = {
        ...{ item, fate, share: random(), sentAt: 0 },
        ...{ version: 0, carriedOutAt: 0, givenUp: undefined },
      }
      writes.set(name, write)
      return write
    },
  }
}

export type SimulatedUpstream = ReturnType<typeof createUpstream>
