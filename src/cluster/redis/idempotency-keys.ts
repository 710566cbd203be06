import { GatewayError } from '../../errors.ts'
import { type Connection, scriptOn } from './connections.ts'
import type { Signatures } from './signatures.ts'

/** As in batch/idempotency-store.ts. */
type KeptAnswer = { readonly status: number; readonly contentType: string; readonly content: Buffer }

type KeyState =
  | { readonly kind: 'begun' }
  | { readonly kind: 'in-flight' }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'finished'; readonly answer: KeptAnswer }
  | { readonly kind: 'not-kept' }

export type IdempotencyKeys = {
  begin(key: string, fingerprint: string): Promise<KeyState>
  finish(key: string, fingerprint: string, answer: KeptAnswer): Promise<void>
  abandon(key: string): Promise<void>
}

export type IdempotencyOptions = {
  readonly prefix: string
  readonly ttlMs: number
  /** A longer answer is not kept. */
  readonly mostBytes: number
  readonly signatures: Signatures
}

/** One step for all instances: whoever finds nothing has begun. */
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

/** Only what has begun: a key whose time was over may be another request's by now. */
const finishScript = `
if redis.call('HGET', KEYS[1], 'state') ~= 'in-flight' then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'status', ARGV[3], 'type', ARGV[4], 'content', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
`

const answerIn = (
  status: Buffer | null | undefined,
  type: Buffer | null | undefined,
  content: Buffer | null | undefined,
): KeptAnswer => {
  const [code, contentType] = [String(status), String(type)]
  if (content == null || !/^[1-5]\d\d$/.test(code) || !/^[\x20-\x7e]+$/.test(contentType)) {
    throw new Error('an idempotency key whose answer is not whole')
  }
  return { status: Number(code), contentType, content }
}

/** Keys of requests that must not be carried out twice, by whichever instance. */
export const createIdempotencyKeys = (
  connection: Connection,
  { prefix, ttlMs, mostBytes, signatures }: IdempotencyOptions,
): IdempotencyKeys => {
  const begin = scriptOn(connection, beginScript)
  const finish = scriptOn(connection, finishScript)
  const keyOf = (key: string): string => `${prefix}:i:{${key}}`

  /** What an answer is signed with: it answers this request and no other one with the same key. */
  const nameOf = (key: string, fingerprint: string, status: number, contentType: string): string =>
    JSON.stringify([keyOf(key), fingerprint, status, contentType])

  const kept = async (key: string, fingerprint: string): Promise<KeyState> => {
    const [status, contentType, content] = await connection.hmgetBuffer(
      keyOf(key),
      'status',
      'type',
      'content',
    )
    // Its time was over in between.
    if (status == null && contentType == null && content == null) return { kind: 'in-flight' }
    const answer = answerIn(status, contentType, content)
    const name = nameOf(key, fingerprint, answer.status, answer.contentType)
    const verified = signatures.verified(name, answer.content)
    if (verified === undefined) throw new Error('UNSIGNED answer to an idempotency key')
    return { kind: 'finished', answer: { ...answer, content: verified } }
  }
  const stateOf = async (key: string, fingerprint: string, said: unknown): Promise<KeyState> => {
    switch (said) {
      case 'begun':
      case 'in-flight':
      case 'mismatch':
      case 'not-kept':
        return { kind: said }
      case 'finished':
        return kept(key, fingerprint)
      default:
        // Of another version, or damaged: it may stand for a batch that has been carried out.
        throw new Error(`an idempotency key in a state that is not known: ${said}`)
    }
  }

  return {
    begin: async (key, fingerprint) => {
      try {
        return await stateOf(key, fingerprint, await begin([keyOf(key)], [fingerprint, ttlMs]))
      } catch (cause) {
        // Not carried out: whether another instance has done so cannot be told.
        throw new GatewayError('shared_store_unreachable', { cause, retryAfterSeconds: 1 })
      }
    },
    finish: async (key, fingerprint, { status, contentType, content }) => {
      const isKept = content.length <= mostBytes
      const state = isKept ? 'finished' : 'not-kept'
      // What cannot be kept now stays in flight until its time is over; the client has its answer all the same.
      const signed = isKept ? signatures.sign(nameOf(key, fingerprint, status, contentType), [content]) : ''
      await finish([keyOf(key)], [ttlMs, state, status, contentType, signed]).catch(() => undefined)
    },
    abandon: async (key) => {
      await connection.del(keyOf(key)).catch(() => undefined)
    },
  }
}
