import type { Readable } from 'node:stream'
import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import type { ByteBudget, Reservation } from '../../http/byte-budget.ts'
import { fieldValue } from '../../http/fields.ts'
import { discard, type Answer as ForwardAnswer, type GatewayResponse } from '../../http/message.ts'
import type { CacheEvent } from '../events.ts'
import type { Moment } from '../policy/freshness.ts'
import { fieldsNotKept } from '../policy/kept-fields.ts'
import {
  isServerError,
  mayShareError,
  type NoStoreReason,
  type StorageDecision,
} from '../policy/storability.ts'
import { storageOf } from '../policy/storage-of.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import type { StoredResponse } from '../store/stored-response.ts'
import type { Flight } from './collapse.ts'
import type { UpstreamAnswer as Answer, Errand, Landing, UpstreamAnswer } from './fetch-outcome.ts'
import { declaredLength, type Fill, type ReadContent, readContent } from './fill.ts'
import type { Help, Incomplete } from './partial-content.ts'
import { confirms, describes, freshenedHead, validationFields } from './revalidation.ts'
import { beginFill, type Storing } from './storing.ts'

type Fields = Readonly<Record<string, string>>

/** For who adds nothing. */
const noFields: Fields = {}

/** Asks the upstream, and notes when: in two halves for who can spare the promise between them. */
const createAsking = (clock: Clock) => {
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  const send = ({ forward, extra, background }: Errand, fields: Fields, signal: AbortSignal): ForwardAnswer =>
    forward({ fields: fields === noFields ? extra : { ...extra, ...fields }, signal, background })

  const answerOf = (response: GatewayResponse, requested: Moment): UpstreamAnswer => ({
    response,
    times: { requested, received: moment() },
  })

  const ask = async (errand: Errand, fields: Fields, signal: AbortSignal): Promise<UpstreamAnswer> => {
    const requested = moment()
    return answerOf(await send(errand, fields, signal), requested)
  }

  return { moment, send, answerOf, ask }
}

type FetchOptions = {
  readonly store: MemoryStore
  readonly storing: Storing
  readonly incomplete: Incomplete
  readonly clock: Clock
  readonly budget: ByteBudget
  readonly maxEntryBytes: number
  readonly report: (event: CacheEvent) => void
}

/** May it be given on while it is stored? An error is read first: perhaps something stale is better. */
const mayFill = (
  response: GatewayResponse,
  storage: StorageDecision,
  maxBytes: number,
): response is GatewayResponse & { readonly content: Readable } =>
  storage.kind === 'store' &&
  response.content !== undefined &&
  !Buffer.isBuffer(response.content) &&
  !isServerError(response) &&
  (declaredLength(response) ?? 0) <= maxBytes

const reasonOf = ({ crowded }: Fill): NoStoreReason => (crowded ? 'no-room' : 'too-large')

/** Makes the function that carries a read to the upstream and keeps what may be kept. */
export const createFetch = (
  options: FetchOptions,
): ((errand: Errand, flight: Flight) => Promise<Landing>) => {
  const { store, storing, incomplete, clock, report, budget, maxEntryBytes } = options
  const { moment, send, answerOf, ask } = createAsking(clock)

  const reservationFor = ({ read }: Errand): Reservation => budget('fill', read.client ?? '')

  const finish = (
    made: StoredResponse,
    { read }: Errand,
    flight: Flight,
    facts: Pick<Extract<Landing, { kind: 'shared' }>, 'upstreamStatus' | 'validated' | 'ownFields'>,
  ): Landing => {
    const kept = storing.store(read, flight, made)
    if (kept.notKept === undefined) incomplete.forget(read)
    return { kind: 'shared', ...kept, ...facts }
  }

  const own = (
    errand: Errand,
    response: GatewayResponse,
    reason: NoStoreReason,
    upstreamStatus: number = response.status,
  ): Landing => {
    report({ kind: 'not-stored', service: errand.read.service, reason })
    return { kind: 'own', response, upstreamStatus, reason }
  }

  const landFilling = async (
    errand: Errand,
    flight: Flight,
    answer: Answer,
    source: Readable,
  ): Promise<Landing> => {
    const { response } = answer
    const room = reservationFor(errand)
    const { fill, end } = await beginFill(response, source, maxEntryBytes, room)
    const facts = {
      upstreamStatus: response.status,
      validated: false,
      ownFields: fieldsNotKept(response),
    }
    const completed = (content: Buffer): Landing =>
      finish(storing.record(errand, flight, answer, { head: response, content }), errand, flight, facts)
    if (end?.kind === 'complete') return completed(end.content)
    if (end?.kind === 'failed') throw end.error
    if (end?.kind === 'overflowed')
      return own(errand, { ...response, content: fill.reader() }, reasonOf(fill))
    const complete = fill.done.then((last): Landing => {
      if (last.kind === 'complete') return completed(last.content)
      if (last.kind === 'failed') return { kind: 'broken', error: last.error }
      report({ kind: 'not-stored', service: errand.read.service, reason: reasonOf(fill) })
      fill.abandon()
      return { kind: 'overflowed' }
    })
    const sketch = storing.sketch(errand, flight, answer)
    const { upstreamStatus, ownFields } = facts
    return { kind: 'filling', sketch, upstreamStatus, ownFields, fill, complete }
  }

  const landRead = (
    errand: Errand,
    flight: Flight,
    answer: Answer,
    storage: StorageDecision,
    read: ReadContent,
  ): Landing => {
    const { response } = answer
    if (read.kind !== 'complete') return own(errand, { ...response, content: read.content }, read.kind)
    const made = storing.record(errand, flight, answer, { head: response, content: read.content })
    if (storage.kind === 'no-store') return { kind: 'server-error', stored: made }
    const ownFields = fieldsNotKept(response)
    return finish(made, errand, flight, { upstreamStatus: response.status, validated: false, ownFields })
  }

  /** At once when all of it is there, as small ones mostly are. */
  const landNew = (errand: Errand, flight: Flight, answer: Answer): Landing | Promise<Landing> => {
    const { response, times } = answer
    const storage = storageOf(response, errand.read, times.received.now)
    if (storage.kind === 'no-store' && !mayShareError(response, storage.reason, errand.read.policy)) {
      return own(errand, response, storage.reason)
    }
    if (response.status === 206) {
      return incomplete.land(errand, flight, answer) ?? own(errand, response, 'part')
    }
    if (mayFill(response, storage, maxEntryBytes))
      return landFilling(errand, flight, answer, response.content)
    const read = readContent(response, maxEntryBytes, reservationFor(errand))
    return read instanceof Promise
      ? read.then((whole) => landRead(errand, flight, answer, storage, whole))
      : landRead(errand, flight, answer, storage, read)
  }

  const landConfirmed = (
    errand: Errand,
    flight: Flight,
    answer: Answer,
    candidate: StoredResponse,
  ): Landing => {
    const head = freshenedHead(candidate, answer.response, answer.times.received.now)
    const storage = storageOf(head, errand.read, answer.times.received.now)
    const made = storing.record(
      errand,
      flight,
      answer,
      { head, content: candidate.content },
      {
        key: errand.read.key,
        extent: undefined,
        upstreamTag: fieldValue(answer.response.fields, 'etag') ?? candidate.upstreamTag,
        forms: candidate.forms,
      },
    )
    const upstreamStatus = answer.response.status
    if (storage.kind === 'no-store') {
      store.delete(candidate.key)
      const { status, fields, content } = made
      return own(errand, { status, fields, content }, storage.reason, upstreamStatus)
    }
    return finish(made, errand, flight, { upstreamStatus, validated: true, ownFields: [] })
  }

  /** Brings no content to keep, but may speak of the one that is kept (RFC 9111 §4.3.5). */
  const landHead = (errand: Errand, flight: Flight, answer: Answer): Landing => {
    const { candidate, read } = errand
    const { response } = answer
    if (response.status !== 200 || read.policy.profile !== 'rfc-shared-cache') {
      return own(errand, response, 'method')
    }
    incomplete.described(errand, flight, answer)
    if (candidate === undefined) return own(errand, response, 'method')
    if (describes(response, candidate)) return landConfirmed(errand, flight, answer, candidate)
    store.delete(candidate.key)
    return own(errand, response, 'method')
  }

  /** Asks for what is missing of the whole, or whether the part that is held is still right; undefined: that was no help. */
  const landWithHelp = async (errand: Errand, flight: Flight, help: Help): Promise<Landing | undefined> => {
    const answer = await ask(errand, help.fields, flight.signal)
    switch (answer.response.status) {
      case 304:
        discard(answer.response.content)
        return incomplete.confirmed(errand, flight, answer, help)
      case 416:
        discard(answer.response.content)
        incomplete.forget(errand.read)
        return undefined
      case 206: {
        if (help.kind === 'validate') return landNew(errand, flight, answer)
        const whole = await incomplete.whole(help.stored, answer, reservationFor(errand))
        if (whole === undefined) {
          incomplete.forget(errand.read)
          return undefined
        }
        if (storageOf(whole.head, errand.read, answer.times.received.now).kind === 'no-store')
          return undefined
        const made = storing.record(errand, flight, answer, whole)
        return finish(made, errand, flight, { upstreamStatus: 206, validated: false, ownFields: [] })
      }
      default:
        return landNew(errand, flight, answer)
    }
  }

  /** Validates what is held of the whole, or asks for all of it. */
  const landValidated = async (
    errand: Errand,
    flight: Flight,
    candidate: StoredResponse,
  ): Promise<Landing> => {
    const validators = validationFields(candidate)
    const answer = await ask(errand, validators, flight.signal)
    if (answer.response.status !== 304 || Object.keys(validators).length === 0) {
      return landNew(errand, flight, answer)
    }
    discard(answer.response.content)
    if (confirms(answer.response, candidate)) return landConfirmed(errand, flight, answer, candidate)
    // The 304 is about something else (RFC 9111 §4.3.4): asked again without conditions.
    const again = await ask(errand, noFields, flight.signal)
    if (again.response.status === 304)
      throw new GatewayError('upstream_broken', { detail: '304 without a condition' })
    return landNew(errand, flight, again)
  }

  return async (errand, flight) => {
    const { candidate, read } = errand
    if (read.method === 'HEAD') return landHead(errand, flight, await ask(errand, noFields, flight.signal))
    if (candidate !== undefined) return landValidated(errand, flight, candidate)
    const help = incomplete.help(read)
    const helped = help === undefined ? undefined : await landWithHelp(errand, flight, help)
    if (helped !== undefined) return helped
    // Without `ask`: a promise less for what most come here for.
    const requested = moment()
    return landNew(errand, flight, answerOf(await send(errand, noFields, flight.signal), requested))
  }
}
