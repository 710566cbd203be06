import { hashOf, readIdempotencyKey } from '../batch/idempotency-key.ts'
import type { IdempotencyStore, KeptAnswer } from '../batch/idempotency-store.ts'
import { GatewayError } from '../errors.ts'
import { requestField } from '../http/fields.ts'
import type { LocalRequest } from '../pipeline/service.ts'

/** Who asks: nobody gets another caller's answer by its key. Callers without a credential are told apart by address. */
const callerOf = ({ request, client }: LocalRequest): readonly string[] => {
  const authorization = requestField(request.fields, 'authorization') ?? ''
  const cookie = requestField(request.fields, 'cookie') ?? ''
  const address = authorization === '' && cookie === '' ? client.address : ''
  return [authorization, cookie, requestField(request.fields, 'x-wp-nonce') ?? '', address]
}

const contentOf = ({ content }: LocalRequest): Buffer =>
  Buffer.isBuffer(content) ? content : Buffer.alloc(0)

/** 400 and the like: nothing was carried out, so the key is free for the request that was meant. */
const ranNothing = ({ status }: KeptAnswer): boolean => status !== 207

/**
 * Carries a batch out once for each Idempotency-Key (draft-ietf-httpapi-idempotency-key-header §2.6): repeated, it gets
 * the same answer again. With a key the batch goes on when its client goes, which will ask again.
 */
export const answeredOnce = async (
  store: IdempotencyStore,
  exchange: LocalRequest,
  field: string | undefined,
  run: (signal: AbortSignal) => Promise<KeptAnswer>,
): Promise<KeptAnswer> => {
  const read = readIdempotencyKey(field)
  if (read.kind === 'none') return run(exchange.request.signal)
  if (read.kind === 'malformed') throw new GatewayError('idempotency_key_malformed')
  const { service } = exchange
  const key = hashOf([service.name, ...callerOf(exchange), read.key])
  const type = requestField(exchange.request.fields, 'content-type') ?? ''
  const fingerprint = hashOf([type, exchange.query, contentOf(exchange)])
  const state = await store.begin(key, fingerprint)
  switch (state.kind) {
    case 'finished':
      return state.answer
    case 'in-flight':
      throw new GatewayError('idempotency_key_in_flight', { retryAfterSeconds: 1 })
    case 'mismatch':
      throw new GatewayError('idempotency_key_reused')
    case 'not-kept':
      throw new GatewayError('idempotency_answer_not_kept')
    case 'begun':
      break
  }
  // When this throws nobody knows what has been carried out, and the key stays taken until its time is over.
  const answer = await run(new AbortController().signal)
  if (ranNothing(answer)) await store.abandon(key)
  else await store.finish(key, fingerprint, answer)
  return answer
}
