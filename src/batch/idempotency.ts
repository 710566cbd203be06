import { createHash } from 'node:crypto'
import { identityCookies } from '../cache/cookies.ts'
import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import type { IdempotencyStore, KeyState, ReplayedResponse } from '../exchange/ports.ts'
import type { LocalRequest } from '../exchange/request-context.ts'
import { hasCredentialParameter, otherCredential } from '../http/headers/credential-headers.ts'
import { requestHeader } from '../http/headers/header-lines.ts'
import { ownBytes } from '../http/retained.ts'

type IdempotencyKey =
  | { readonly kind: 'none' }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'malformed' }

/** RFC 9651 §3.3.3: a String; many clients send it without its quotes, which is understood as well. */
const quotedPattern = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"$/
const barePattern = /^[A-Za-z0-9._~:+/=-]{1,255}$/

/** Reads the header (draft-ietf-httpapi-idempotency-key-header §2.1). */
export const readIdempotencyKey = (value: string | undefined): IdempotencyKey => {
  if (value === undefined) return { kind: 'none' }
  const quotedKey = quotedPattern.exec(value)?.[1]
  if (quotedKey !== undefined) return { kind: 'key', key: quotedKey.replaceAll(/\\(["\\])/g, '$1') }
  return barePattern.test(value) ? { kind: 'key', key: value } : { kind: 'malformed' }
}

/** One hash of several texts; their lengths keep the borders. */
export const hashOf = (parts: readonly (string | Buffer)[]): string => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(`${part.length}:`).update(part)
  return hash.digest('base64url')
}

type KeptEntry = {
  readonly fingerprint: string
  readonly untilMs: number
  readonly bytes: number
  /** For a request with the same fingerprint. */
  readonly state: KeyState
}

/** Two hashes, the map's own share and the entry. */
const entryBytes = 400

type KeyBounds = { readonly ttlMs: number; readonly maxBytes: number }

/** Keys of one process. Each configuration has bounds of its own; what is kept stays until it expires. */
export type KeysInMemory = { under(bounds: KeyBounds): IdempotencyStore }

/**
 * Bounded in time and bytes: the oldest that are finished go first. A response that takes more than an eighth of `maxBytes` is not stored,
 * so that one caller cannot evict all others with one request.
 */
export const createKeysInMemory = (clock: Clock): KeysInMemory => {
  // Insertion order is the order of age: a finished entry is put at the end again.
  const entries = new Map<string, KeptEntry>()
  let bytes = 0

  const remove = (key: string): void => {
    bytes -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
  }
  const put = (key: string, entry: KeptEntry): void => {
    remove(key)
    entries.set(key, entry)
    bytes += entry.bytes
  }
  const tidy = (nowMs: number, maxBytes: number): void => {
    for (const [key, entry] of entries) {
      const isOver = bytes > maxBytes
      if (entry.untilMs > nowMs && !isOver) return
      // Those in flight are as many as there are requests, and are bounded like them.
      if (entry.untilMs <= nowMs || entry.state.kind !== 'in-flight') remove(key)
    }
  }

  const under = ({ ttlMs, maxBytes }: KeyBounds): IdempotencyStore => ({
    async begin(key, fingerprint) {
      const nowMs = clock.monotonic()
      tidy(nowMs, maxBytes)
      const entry = entries.get(key)
      if (entry !== undefined && entry.untilMs > nowMs)
        return entry.fingerprint === fingerprint ? entry.state : { kind: 'mismatch' }
      const untilMs = nowMs + ttlMs
      put(key, { fingerprint, untilMs, bytes: entryBytes, state: { kind: 'in-flight' } })
      return { kind: 'begun' }
    },
    async finish(key, fingerprint, response) {
      if (entries.get(key)?.fingerprint !== fingerprint) return
      const nowMs = clock.monotonic()
      const isKept = response.content.length <= maxBytes / 8
      put(key, {
        fingerprint,
        untilMs: nowMs + ttlMs,
        bytes: entryBytes + (isKept ? response.content.length : 0),
        state: isKept
          ? { kind: 'finished', response: { ...response, content: ownBytes(response.content) } }
          : { kind: 'not-kept' },
      })
      tidy(nowMs, maxBytes)
    },
    async abandon(key) {
      remove(key)
    },
  })
  return { under }
}

/** The caller is part of the key, so that no other caller gets the response. Without a credential the address stands for it. */
const callerOf = (
  { request, client, identity, query, policy }: LocalRequest,
  keyHeaders: readonly string[],
): readonly string[] => {
  const others = otherCredential(request.headers, [], keyHeaders) ?? ''
  const authorization = requestHeader(request.headers, 'authorization') ?? ''
  const cookies = requestHeader(request.headers, 'cookie') ?? ''
  const areOfMany = identityCookies(cookies, policy).every(({ isOfMany }) => isOfMany === true)
  const cookie = areOfMany ? '' : cookies
  const verified = identity?.credential ?? ''
  const inQuery = hasCredentialParameter(query, []) ? query : ''
  const address = [authorization, cookie, verified, others].every((part) => part === '') ? client.address : ''
  return [authorization, cookie, verified, others, inQuery, address]
}

const contentOf = ({ content }: LocalRequest): Buffer =>
  Buffer.isBuffer(content) ? content : Buffer.alloc(0)

/** 400 and similar: no item was carried out, so the key stays free for the corrected request. */
const ranNothing = ({ status }: ReplayedResponse): boolean => status !== 207

/**
 * Carries a batch out once for each Idempotency-Key (draft-ietf-httpapi-idempotency-key-header §2.6): repeated, it gets
 * the same answer again. With a key the batch continues when its client disconnects, which is expected to repeat it.
 */
export const respondOnce = async (
  store: IdempotencyStore,
  context: LocalRequest,
  keyHeaders: readonly string[],
  header: string | undefined,
  run: (signal: AbortSignal) => Promise<ReplayedResponse>,
): Promise<ReplayedResponse> => {
  const reading = readIdempotencyKey(header)
  if (reading.kind === 'none') return run(context.request.signal)
  if (reading.kind === 'malformed') throw new GatewayError('idempotency_key_malformed')
  const { name, address } = context.service
  const key = hashOf([
    name,
    ...(address.host === '' ? [] : [address.host]),
    ...callerOf(context, keyHeaders),
    reading.key,
  ])
  const type = requestHeader(context.request.headers, 'content-type') ?? ''
  const fingerprint = hashOf([type, context.query, contentOf(context)])
  const state = await store.begin(key, fingerprint)
  switch (state.kind) {
    case 'finished':
      return state.response
    case 'in-flight':
      throw new GatewayError('idempotency_key_in_flight', { retryAfterSeconds: 1 })
    case 'mismatch':
      throw new GatewayError('idempotency_key_reused')
    case 'not-kept':
      throw new GatewayError('idempotency_answer_not_kept')
    case 'begun':
      break
  }
  // When this throws the outcome is unknown, and the key stays in use until it expires.
  const response = await run(new AbortController().signal)
  if (ranNothing(response)) await store.abandon(key)
  else await store.finish(key, fingerprint, response)
  return response
}
