import type { Clock } from '../clock.ts'
import { GatewayError } from '../errors.ts'
import { type FieldLines, fieldValue, fieldValues } from '../http/fields.ts'
import type { GatewayResponse, ResponseHead } from '../http/message.ts'
import type { ExchangeTimes, Moment } from './age.ts'
import type { CacheRead, Forward } from './cache-read.ts'
import { discard } from './discard.ts'
import type { CacheEvent } from './events.ts'
import type { Flight } from './flights.ts'
import type { Keep } from './keep.ts'
import type { Landing } from './landing.ts'
import type { MemoryStore } from './memory-store.ts'
import type { CachePolicy } from './policy.ts'
import { readContent } from './read-content.ts'
import { responseControl } from './response-control.ts'
import { confirms, describes, freshenedHead, validationFields } from './revalidation.ts'
import type { NoStoreReason } from './storability.ts'
import { storageOf } from './storage-of.ts'
import { makeStored, type StoredResponse, withTags } from './stored-response.ts'

export type FetchOptions = {
  readonly store: MemoryStore
  readonly keep: Keep
  readonly clock: Clock
  readonly maxEntryBytes: number
  /** See encodings.ts. */
  readonly codedFrom: (read: CacheRead) => number
  readonly report: (event: CacheEvent) => void
}

/** One forward: whom it is for, how to ask, and what it could validate. */
export type Errand = {
  readonly read: CacheRead
  readonly forward: Forward
  readonly candidate: StoredResponse | undefined
  /** Range and If-Range of a reader who asks alone. */
  readonly extra: Readonly<Record<string, string>>
}

type Answer = { readonly response: GatewayResponse; readonly times: ExchangeTimes }

const serverErrors: ReadonlySet<number> = new Set([500, 502, 503, 504])

/** Is this an upstream that failed, rather than an answer? */
export const isServerError = (head: ResponseHead): boolean => serverErrors.has(head.status)

const harmless: ReadonlySet<NoStoreReason> = new Set(['status', 'no-freshness'])
/** `safe` asks without credentials and cookies, so that an error says nothing of the one who asked, whatever its directives say. */
const harmlessWhenAnonymous: ReadonlySet<NoStoreReason> = new Set([...harmless, 'private', 'no-store'])

/** May readers who wait at this moment share an error that is not kept? A failing upstream is not asked again by each of them. */
const mayShareError = (head: ResponseHead, reason: NoStoreReason, policy: CachePolicy): boolean =>
  isServerError(head) && (policy.profile === 'safe' ? harmlessWhenAnonymous : harmless).has(reason)

/** What is not kept and yet belongs to the reader who asked: Age as it came, and fields that no-cache or private name. */
const fieldsNotKept = (response: ResponseHead): FieldLines => {
  const names = new Set(['age', ...responseControl(response.fields).unkept])
  const lines: string[] = []
  for (const name of names) for (const value of fieldValues(response.fields, name)) lines.push(name, value)
  return lines
}

/** Makes the function that carries a read to the upstream and keeps what may be kept. */
export const createFetch = (
  options: FetchOptions,
): ((errand: Errand, flight: Flight) => Promise<Landing>) => {
  const { store, keep, clock, report, maxEntryBytes, codedFrom } = options
  const moment = (): Moment => ({ now: clock.now(), monotonic: clock.monotonic() })

  const ask = async (
    errand: Errand,
    fields: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Answer> => {
    const requested = moment()
    const response = await errand.forward({ fields: { ...errand.extra, ...fields }, signal })
    return { response, times: { requested, received: moment() } }
  }

  const finish = (
    made: StoredResponse,
    errand: Errand,
    flight: Flight,
    facts: Pick<Extract<Landing, { kind: 'shared' }>, 'upstreamStatus' | 'validated' | 'ownFields'>,
  ): Landing => {
    const { read } = errand
    const tags = read.tags({
      kind: 'response',
      status: made.status,
      fields: made.fields,
      content: made.content,
    })
    const stored = withTags(made, tags)
    const notKept = keep(stored, flight.began)
    report(
      notKept === undefined
        ? { kind: 'stored', service: read.service, bytes: stored.bytes }
        : { kind: 'not-stored', service: read.service, reason: notKept },
    )
    return { kind: 'shared', stored, notKept, ...facts }
  }

  const record = (errand: Errand, flight: Flight, answer: Answer, content: Buffer): StoredResponse =>
    makeStored({
      key: errand.read.key,
      head: answer.response,
      content,
      selecting: errand.read,
      times: answer.times,
      policy: errand.read.policy,
      upstreamTag: fieldValue(answer.response.fields, 'etag'),
      order: flight.order,
      codedFrom: codedFrom(errand.read),
      forms: [],
    })

  const own = (errand: Errand, response: GatewayResponse, reason: NoStoreReason): Landing => {
    report({ kind: 'not-stored', service: errand.read.service, reason })
    return { kind: 'own', response, reason }
  }

  const landNew = async (errand: Errand, flight: Flight, answer: Answer): Promise<Landing> => {
    const { response, times } = answer
    const storage = storageOf(response, errand.read, times.received.now)
    if (storage.kind === 'no-store' && !mayShareError(response, storage.reason, errand.read.policy)) {
      return own(errand, response, storage.reason)
    }
    const read = await readContent(response, maxEntryBytes)
    if (read.kind === 'too-large') return own(errand, { ...response, content: read.content }, 'too-large')
    const made = record(errand, flight, answer, read.content)
    if (storage.kind === 'no-store') return { kind: 'server-error', stored: made }
    const ownFields = fieldsNotKept(response)
    return finish(made, errand, flight, { upstreamStatus: response.status, validated: false, ownFields })
  }

  const landConfirmed = (
    errand: Errand,
    flight: Flight,
    answer: Answer,
    candidate: StoredResponse,
  ): Landing => {
    const head = freshenedHead(candidate, answer.response, answer.times.received.now)
    const storage = storageOf(head, errand.read, answer.times.received.now)
    const made = makeStored({
      key: candidate.key,
      head,
      content: candidate.content,
      selecting: errand.read,
      times: answer.times,
      policy: errand.read.policy,
      upstreamTag: fieldValue(answer.response.fields, 'etag') ?? candidate.upstreamTag,
      order: flight.order,
      codedFrom: codedFrom(errand.read),
      forms: candidate.forms,
    })
    if (storage.kind === 'no-store') {
      store.delete(candidate.key)
      return own(
        errand,
        { kind: 'response', status: made.status, fields: made.fields, content: made.content },
        storage.reason,
      )
    }
    return finish(made, errand, flight, {
      upstreamStatus: answer.response.status,
      validated: true,
      ownFields: [],
    })
  }

  /** Brings no content to keep, but may speak of the one that is kept (RFC 9111 §4.3.5). */
  const landHead = (errand: Errand, flight: Flight, answer: Answer): Landing => {
    const { candidate, read } = errand
    const { response } = answer
    const speaks =
      candidate !== undefined && response.status === 200 && read.policy.profile === 'rfc-shared-cache'
    if (!speaks) return own(errand, response, 'method')
    if (describes(response, candidate)) return landConfirmed(errand, flight, answer, candidate)
    store.delete(candidate.key)
    return own(errand, response, 'method')
  }

  return async (errand, flight) => {
    const { candidate } = errand
    const validators =
      candidate === undefined || errand.read.method === 'HEAD' ? {} : validationFields(candidate)
    const conditional = Object.keys(validators).length > 0
    const answer = await ask(errand, validators, flight.signal)
    if (errand.read.method === 'HEAD') return landHead(errand, flight, answer)
    if (!conditional || candidate === undefined || answer.response.status !== 304) {
      return landNew(errand, flight, answer)
    }
    discard(answer.response.content)
    if (confirms(answer.response, candidate)) return landConfirmed(errand, flight, answer, candidate)
    // The 304 is about something else (RFC 9111 §4.3.4): asked again without conditions.
    const again = await ask(errand, {}, flight.signal)
    if (again.response.status === 304)
      throw new GatewayError('upstream_broken', { detail: '304 without a condition' })
    return landNew(errand, flight, again)
  }
}
