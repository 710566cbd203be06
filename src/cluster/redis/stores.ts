import { GatewayError } from '../../errors.ts'
import type { IdempotencyStore, KeyState, RateLimitStore, ReplayedResponse } from '../../exchange/ports.ts'
import { isJsonObject, parsedJson } from '../../http/json-text.ts'
import { type RedisConnection, scriptOn } from './connections.ts'
import type { Signatures } from './values.ts'

/**
 * As takeOne of server/rate-limiter.ts. What a client has used up is the lifetime of its key, so that no clock is asked; the value is
 * the part of a millisecond that a lifetime cannot have.
 */
const countScript = `
local window, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local used = 0
local left = redis.call('PTTL', KEYS[1])
if left > 0 then used = math.max(0, left + (tonumber(redis.call('GET', KEYS[1])) or 0)) end
local after = used + interval
if after > window + interval / 1000000 then return { 0, tostring(used) } end
local lifetime = math.ceil(after)
redis.call('SET', KEYS[1], tostring(after - lifetime), 'PX', lifetime)
return { 1, tostring(after) }
`

const isAmount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** Counts requests of clients for all instances together. What was counted of another window says nothing of this one. */
export const createCountedRequests = (connection: RedisConnection, prefix: string): RateLimitStore => {
  const count = scriptOn(connection, countScript)
  return {
    take: async (limit, key, { windowMs, intervalMs }) => {
      const reply = await count([`${prefix}:r:{${limit}:${windowMs}:${key}}`], [windowMs, intervalMs])
      const [admitted, used] = (Array.isArray(reply) ? reply : []) as readonly unknown[]
      const usedMs = typeof used === 'string' ? Number(used) : Number.NaN
      if ((admitted !== 0 && admitted !== 1) || !(usedMs >= 0)) throw new Error('MALFORMED count')
      return { admitted: admitted === 1, usedMs: Math.min(usedMs, windowMs) }
    },
  }
}

export type IdempotencyOptions = {
  readonly prefix: string
  readonly ttlMs: number
  /** A longer response is not stored. */
  readonly maxBytes: number
  readonly signatures: Signatures
}

/** One atomic step for all instances: the caller that finds nothing owns the key. */
const beginScript = `
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'state', 'in-flight')
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 'begun'
end
local known = redis.call('HGET', KEYS[1], 'fingerprint')
if not known then return 'no fingerprint' end
if known ~= ARGV[1] then return 'mismatch' end
return redis.call('HGET', KEYS[1], 'state')
`

/** Only for a request whose key is in flight: an expired key may belong to another one. */
const finishScript = `
if redis.call('HGET', KEYS[1], 'state') ~= 'in-flight' or redis.call('HGET', KEYS[1], 'fingerprint') ~= ARGV[6] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'status', ARGV[3], 'type', ARGV[4], 'content', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`

const replyIn = (
  status: Buffer | null | undefined,
  type: Buffer | null | undefined,
  content: Buffer | null | undefined,
): ReplayedResponse => {
  const [code, contentType] = [String(status), String(type)]
  if (content == null || !/^[1-5]\d\d$/.test(code) || !/^[\x20-\x7e]+$/.test(contentType)) {
    throw new Error('an idempotency key with an incomplete response')
  }
  return { status: Number(code), contentType, content }
}

/** Keys of requests that no two instances may carry out. */
export const createIdempotencyKeys = (
  connection: RedisConnection,
  { prefix, ttlMs, maxBytes, signatures }: IdempotencyOptions,
): IdempotencyStore => {
  const begin = scriptOn(connection, beginScript)
  const finish = scriptOn(connection, finishScript)
  const keyOf = (key: string): string => `${prefix}:i:{${key}}`

  /** The name that a response is signed with: it answers this request and no other one with the same key. */
  const nameOf = (key: string, fingerprint: string, status: number, contentType: string): string =>
    JSON.stringify([keyOf(key), fingerprint, status, contentType])

  const finishedState = async (key: string, fingerprint: string): Promise<KeyState> => {
    const [status, contentType, content] = await connection.hmgetBuffer(
      keyOf(key),
      'status',
      'type',
      'content',
    )
    // It expired in between.
    if (status == null && contentType == null && content == null) return { kind: 'in-flight' }
    const response = replyIn(status, contentType, content)
    const name = nameOf(key, fingerprint, response.status, response.contentType)
    const verified = signatures.verified(name, response.content)
    if (verified === undefined) throw new Error('UNSIGNED answer to an idempotency key')
    return { kind: 'finished', response: { ...response, content: verified } }
  }
  const stateOf = async (key: string, fingerprint: string, state: unknown): Promise<KeyState> => {
    switch (state) {
      case 'begun':
      case 'in-flight':
      case 'mismatch':
      case 'not-kept':
        return { kind: state }
      case 'finished':
        return finishedState(key, fingerprint)
      default:
        // Of another version, or damaged: the batch may have been carried out.
        throw new Error(`an idempotency key in an unknown state: ${state}`)
    }
  }

  return {
    begin: async (key, fingerprint) => {
      try {
        return await stateOf(key, fingerprint, await begin([keyOf(key)], [fingerprint, ttlMs]))
      } catch (cause) {
        // Not carried out here; whether another instance has carried it out is unknown.
        throw new GatewayError('shared_store_unreachable', { cause, retryAfterSeconds: 1 })
      }
    },
    finish: async (key, fingerprint, { status, contentType, content }) => {
      const isKept = content.length <= maxBytes
      const state = isKept ? 'finished' : 'not-kept'
      // A response that cannot be stored leaves the key in flight until it expires; the client still gets the response.
      const signed = isKept ? signatures.sign(nameOf(key, fingerprint, status, contentType), [content]) : ''
      await finish([keyOf(key)], [ttlMs, state, status, contentType, signed, fingerprint]).catch(
        () => undefined,
      )
    },
    abandon: async (key) => {
      await connection.del(keyOf(key)).catch(() => undefined)
    },
  }
}

/** A position in the log of changes of one service: every row up to it is applied in all instances. */
type ChangePosition = {
  readonly incarnation: string
  readonly position: number
  readonly newest: { readonly sequence: number; readonly check: string } | undefined
  readonly fingerprint: string
}

export type ChangePositions = {
  read(): Promise<ChangePosition | undefined>
  write(position: ChangePosition): Promise<void>
}

/** A gateway that was away for longer drops everything. */
const keptMs = 7 * 86_400_000

const isPosition = (value: unknown): value is ChangePosition => {
  if (!isJsonObject(value)) return false
  const { incarnation, position, newest, fingerprint } = value
  const isRow = isJsonObject(newest) && isAmount(newest['sequence']) && typeof newest['check'] === 'string'
  return (
    (newest === undefined || isRow) &&
    typeof incarnation === 'string' &&
    incarnation !== '' &&
    typeof fingerprint === 'string' &&
    isAmount(position)
  )
}

/** Keeps the position of one service for all instances. A value that cannot be read counts as absent. */
export const createChangePositions = (
  connection: RedisConnection,
  options: { readonly prefix: string; readonly service: string; readonly signatures: Signatures },
): ChangePositions => {
  const key = `${options.prefix}:changes:{${options.service}}`
  return {
    read: async () => {
      const signed = await connection.get(key)
      const text = signed === null ? undefined : options.signatures.verifiedText(key, signed)
      const value = text === undefined ? undefined : parsedJson(text)
      return isPosition(value) ? value : undefined
    },
    write: async ({ incarnation, position, newest, fingerprint }) => {
      const text = JSON.stringify({ incarnation, position, newest, fingerprint })
      await connection.set(key, options.signatures.signText(key, text), 'PX', keptMs)
    },
  }
}
