import { createHash } from 'node:crypto'
import { compileLua, type LuaScript, LuaTable, type LuaValue, textOf } from './lua.ts'

/** A model of Redis: the commands that src/cluster uses, and its scripts. test/real/redis-model.real.test.ts compares it with a server. */

type Held =
  | { readonly kind: 'string'; value: string | Buffer }
  | { readonly kind: 'hash'; readonly headers: Map<string, string> }
  | { readonly kind: 'zset'; readonly scores: Map<string, number>; sorted: readonly string[] | undefined }

type Entry = Held & { expiresAt: number | undefined }

/** The reply to a command; a status and a bulk string are both texts here. */
export type Reply = string | number | null | Buffer | readonly Reply[]

/** An error reply of the server. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError'
}

type Server = {
  /** Milliseconds of the clock of the server. */
  now(): number
  runId(): string
  replicationId(): string
  publish(channel: string, message: string): number
}

const wrongType = (): ReplyError =>
  new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value')

const compiled = new Map<string, LuaScript>()
const scriptOf = (text: string): LuaScript => {
  const known = compiled.get(text) ?? compileLua(text)
  compiled.set(text, known)
  return known
}

const digests = new Map<string, string>()
const digestOf = (text: string): string => {
  const known = digests.get(text) ?? createHash('sha1').update(text).digest('hex')
  digests.set(text, known)
  return known
}

const toLua = (reply: Reply): LuaValue => {
  if (reply === null) return false
  if (Array.isArray(reply)) return new LuaTable(reply.map(toLua))
  return Buffer.isBuffer(reply) ? reply.toString() : (reply as string | number)
}

/** A list ends at its first nil. */
const fromLua = (value: LuaValue): Reply => {
  if (value === undefined || value === false) return null
  if (value === true) return 1
  if (typeof value === 'number') return Math.trunc(value)
  if (typeof value === 'string') return value
  const end = value.list.indexOf(undefined)
  return (end < 0 ? value.list : value.list.slice(0, end)).map(fromLua)
}

const scoreText = (score: number): string => (score === Number.POSITIVE_INFINITY ? 'inf' : String(score))
const scoreOf = (text: string): number => (text === 'inf' ? Number.POSITIVE_INFINITY : Number(text))

const copyOf = (entry: Entry): Entry => {
  if (entry.kind === 'hash') return { ...entry, headers: new Map(entry.headers) }
  return entry.kind === 'zset' ? { ...entry, scores: new Map(entry.scores), sorted: undefined } : { ...entry }
}

export type StoredData = ReadonlyMap<string, Entry>

export const createRedisStore = (server: Server) => {
  let entries = new Map<string, Entry>()
  const scripts = new Map<string, string>()

  const entryAt = (key: string): Entry | undefined => {
    const entry = entries.get(key)
    if (entry?.expiresAt === undefined || entry.expiresAt > server.now()) return entry
    entries.delete(key)
    return undefined
  }
  const hashAt = (key: string): Map<string, string> | undefined => {
    const entry = entryAt(key)
    if (entry !== undefined && entry.kind !== 'hash') throw wrongType()
    return entry?.headers
  }
  const newHashAt = (key: string): Map<string, string> => {
    const known = hashAt(key)
    if (known !== undefined) return known
    const headers = new Map<string, string>()
    entries.set(key, { kind: 'hash', headers, expiresAt: undefined })
    return headers
  }
  const zsetAt = (key: string): Extract<Entry, { kind: 'zset' }> | undefined => {
    const entry = entryAt(key)
    if (entry !== undefined && entry.kind !== 'zset') throw wrongType()
    return entry
  }
  const newZsetAt = (key: string): Extract<Entry, { kind: 'zset' }> => {
    const known = zsetAt(key)
    if (known !== undefined) return known
    const made = { kind: 'zset', scores: new Map(), sorted: undefined, expiresAt: undefined } as const
    const entry: Extract<Entry, { kind: 'zset' }> = { ...made }
    entries.set(key, entry)
    return entry
  }
  const removeIfEmpty = (key: string, size: number): void => {
    if (size === 0) entries.delete(key)
  }
  /** Members in the order of their scores, then of their bytes. */
  const sortedOf = (zset: Extract<Entry, { kind: 'zset' }>): readonly string[] => {
    zset.sorted ??= [...zset.scores]
      .sort(
        ([one, first], [other, second]) =>
          first - second || Buffer.compare(Buffer.from(one), Buffer.from(other)),
      )
      .map(([member]) => member)
    return zset.sorted
  }
  const withScores = (
    zset: Extract<Entry, { kind: 'zset' }>,
    members: readonly string[],
    isWith: boolean,
  ): Reply =>
    members.flatMap((member) => (isWith ? [member, scoreText(zset.scores.get(member) ?? 0)] : [member]))
  const stringAt = (key: string): string | Buffer | undefined => {
    const entry = entryAt(key)
    if (entry !== undefined && entry.kind !== 'string') throw wrongType()
    return entry?.value
  }
  const ranks = (size: number, from: string, to: string): readonly [number, number] => {
    const place = (text: string): number => (Number(text) < 0 ? size + Number(text) : Number(text))
    return [Math.max(0, place(from)), place(to) + 1]
  }

  type Command = (args: readonly string[], last: string | Buffer | undefined) => Reply
  const commands: Readonly<Record<string, Command>> = {
    PING: () => 'PONG',
    TIME: () => {
      const now = server.now()
      return [String(Math.floor(now / 1000)), String(Math.floor((now % 1000) * 1000))]
    },
    INFO: ([section]) =>
      section === 'server'
        ? `# Server\r\nrun_id:${server.runId()}\r\n`
        : `# Replication\r\nrole:master\r\nmaster_replid:${server.replicationId()}\r\n`,
    DEL: (keys) => keys.filter((key) => entryAt(key) !== undefined && entries.delete(key)).length,
    EXISTS: (keys) => keys.filter((key) => entryAt(key) !== undefined).length,
    GET: ([key = '']) => stringAt(key) ?? null,
    GETRANGE: ([key = '', from = '', to = '']) => {
      const value = Buffer.from(stringAt(key) ?? '')
      return value.subarray(...ranks(value.length, from, to))
    },
    SET: ([key = '', , ...options], value = '') => {
      if (options.includes('NX') && entryAt(key) !== undefined) return null
      const at = options.indexOf('PX')
      const expiresAt = at < 0 ? undefined : server.now() + Number(options[at + 1])
      entries.set(key, { kind: 'string', value, expiresAt })
      return 'OK'
    },
    INCR: ([key = '']) => {
      const next = Number(stringAt(key) ?? 0) + 1
      entries.set(key, { kind: 'string', value: String(next), expiresAt: entryAt(key)?.expiresAt })
      return next
    },
    PTTL: ([key = '']) => {
      const entry = entryAt(key)
      if (entry === undefined) return -2
      return entry.expiresAt === undefined ? -1 : Math.ceil(entry.expiresAt - server.now())
    },
    PEXPIRE: ([key = '', ms = '']) => {
      const entry = entryAt(key)
      if (entry === undefined) return 0
      entry.expiresAt = server.now() + Number(ms)
      return 1
    },
    HGET: ([key = '', header = '']) => hashAt(key)?.get(header) ?? null,
    HMGET: ([key = '', ...headers]) => headers.map((header) => hashAt(key)?.get(header) ?? null),
    HGETALL: ([key = '']) => [...(hashAt(key) ?? [])].flat(),
    HSET: ([key = '', ...pairs]) => {
      const headers = newHashAt(key)
      const before = headers.size
      for (let i = 0; i < pairs.length; i += 2) headers.set(pairs[i] ?? '', pairs[i + 1] ?? '')
      return headers.size - before
    },
    HSETNX: ([key = '', header = '', value = '']) => {
      const headers = newHashAt(key)
      if (headers.has(header)) return 0
      headers.set(header, value)
      return 1
    },
    HDEL: ([key = '', ...names]) => {
      const headers = hashAt(key)
      if (headers === undefined) return 0
      const removed = names.filter((name) => headers.delete(name)).length
      removeIfEmpty(key, headers.size)
      return removed
    },
    ZADD: ([key = '', score = '', member = '']) => {
      const zset = newZsetAt(key)
      const before = zset.scores.size
      zset.scores.set(member, scoreOf(score))
      zset.sorted = undefined
      return zset.scores.size - before
    },
    ZSCORE: ([key = '', member = '']) => {
      const score = zsetAt(key)?.scores.get(member)
      return score === undefined ? null : scoreText(score)
    },
    ZCARD: ([key = '']) => zsetAt(key)?.scores.size ?? 0,
    ZRANGE: ([key = '', from = '', to = '', option]) => {
      const zset = zsetAt(key)
      if (zset === undefined) return []
      const sorted = sortedOf(zset)
      return withScores(zset, sorted.slice(...ranks(sorted.length, from, to)), option === 'WITHSCORES')
    },
    ZRANGEBYSCORE: ([key = '', from = '', to = '', option]) => {
      const zset = zsetAt(key)
      if (zset === undefined) return []
      const isOpen = from.startsWith('(')
      const [min, max] = [scoreOf(isOpen ? from.slice(1) : from), scoreOf(to)]
      const members = sortedOf(zset).filter((member) => {
        const score = zset.scores.get(member) ?? 0
        return (isOpen ? score > min : score >= min) && score <= max
      })
      return withScores(zset, members, option === 'WITHSCORES')
    },
    ZREMRANGEBYRANK: ([key = '', from = '', to = '']) => {
      const zset = zsetAt(key)
      if (zset === undefined) return 0
      const sorted = sortedOf(zset)
      const members = sorted.slice(...ranks(sorted.length, from, to))
      for (const member of members) zset.scores.delete(member)
      zset.sorted = undefined
      removeIfEmpty(key, zset.scores.size)
      return members.length
    },
    PUBLISH: ([channel = '', message = '']) => server.publish(channel, message),
    EVAL: (args) => evaluate(args[0] ?? '', args),
    EVALSHA: (args) => {
      const text = scripts.get(args[0] ?? '')
      if (text === undefined) throw new ReplyError('NOSCRIPT No matching script. Please use EVAL.')
      return evaluate(text, args)
    },
  }
  const evaluate = (text: string, [, count = '0', ...rest]: readonly string[]): Reply => {
    scripts.set(digestOf(text), text)
    const keys = rest.slice(0, Number(count))
    const argv = rest.slice(Number(count))
    const call = (...args: readonly LuaValue[]): LuaValue => toLua(run(args.map(textOf)))
    return fromLua(scriptOf(text)(call, keys, argv))
  }
  /** Carries a command out; throws a ReplyError. */
  const run = (command: readonly (string | Buffer)[]): Reply => {
    const [name = '', ...args] = command
    const carryOut = commands[String(name).toUpperCase()]
    if (carryOut === undefined) throw new ReplyError(`ERR unknown command '${String(name)}'`)
    const value = String(name).toUpperCase() === 'SET' ? args[1] : undefined
    return carryOut(args.map(String), value)
  }
  return {
    run,
    /** A copy, which a replica or a file has. */
    copy: (): StoredData => new Map([...entries].map(([key, entry]) => [key, copyOf(entry)])),
    /** Replaces everything that is stored. */
    restore: (data: StoredData): void => {
      entries = new Map([...data].map(([key, entry]) => [key, copyOf(entry)]))
    },
    /** A server that starts knows no scripts. */
    forgetScripts: (): void => scripts.clear(),
    delete: (key: string): boolean => entries.delete(key),
  }
}

export type RedisStore = ReturnType<typeof createRedisStore>
