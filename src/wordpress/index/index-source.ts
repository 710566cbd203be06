import { isDeepStrictEqual } from 'node:util'
import { type Clock, withTimeout } from '../../clock.ts'
import type { Pieces } from '../../http/bodies/turns.ts'
import { type JsonObject, ownMember } from '../../http/json-text.ts'
import type { IndexRefusal } from '../../service/connection.ts'
import type { Endpoint, Row, UpstreamDefault } from '../../service/row.ts'
import { asMap, isArgumentTakenOtherwise } from './drift.ts'
import { describeEndpoint, endpointWith, type IndexDocument, patternsByTemplate } from './index-document.ts'

/** The upstream's response at its REST root. */
export type IndexResponse = { readonly status: number; readonly content: Buffer }

/** How the source sends requests; all times in milliseconds. */
export type IndexSourceOptions = {
  readonly clock: Clock
  readonly refreshMs: number
  readonly timeoutMs: number
  /** After a failure, requests cause no new attempt before this has passed. */
  readonly retryAfterMs: number
  fetchIndex(signal: AbortSignal): Promise<IndexResponse>
  /** Takes a complete response; returns the reason when it is unusable. */
  accept(content: Buffer): Promise<'accepted' | IndexRefusal>
  /** `cause` is the error, if there was one; for the log. */
  failed(reason: IndexRefusal, cause: unknown): void
}

type Failure = { readonly reason: IndexRefusal; readonly cause: unknown }

type IndexAttempt = { readonly attemptNumber: number; readonly done: Promise<void> }

/** Keeps an upstream's index up to date: one request at a time, on a timer and when asked. It has sent no request yet. */
export const createIndexSource = (options: IndexSourceOptions) => {
  const closing = new AbortController()
  let attemptNumber = 0
  let acceptedAttempt = -1
  let inFlight: IndexAttempt | undefined
  let timer: NodeJS.Timeout | undefined
  let lastFailureMs = Number.NEGATIVE_INFINITY

  const schedule = (): void => {
    clearTimeout(timer)
    if (closing.signal.aborted) return
    timer = setTimeout(() => void refresh(), options.refreshMs)
    timer.unref()
  }

  const ask = (): Promise<IndexResponse | Failure> =>
    withTimeout(
      options.timeoutMs,
      ({ signal }) =>
        options
          .fetchIndex(signal)
          .catch(
            (cause: unknown): Failure => ({ reason: signal.aborted ? 'timeout' : 'unreachable', cause }),
          ),
      closing.signal,
    )

  const attempt = async (begun: number): Promise<void> => {
    if (closing.signal.aborted) return
    const response = await ask()
    if (closing.signal.aborted) return
    const failure = 'reason' in response ? response : await take(response)
    if (closing.signal.aborted) return
    if (failure === undefined) {
      acceptedAttempt = begun
      lastFailureMs = Number.NEGATIVE_INFINITY
    } else {
      lastFailureMs = options.clock.monotonic()
      options.failed(failure.reason, failure.cause)
    }
  }

  const take = async (response: IndexResponse): Promise<Failure | undefined> => {
    if (response.status !== 200) return { reason: 'status', cause: undefined }
    try {
      const outcome = await options.accept(response.content)
      return outcome === 'accepted' ? undefined : { reason: outcome, cause: undefined }
    } catch (cause) {
      // A response must never end the process; the last good index stays.
      return { reason: 'unusable', cause }
    }
  }

  /** Sends a request now. */
  const refresh = (): Promise<void> => {
    // An attempt that began before an invalidation may carry old data, so it does not count.
    if (inFlight?.attemptNumber === attemptNumber) return inFlight.done
    const begun = attemptNumber
    const before = inFlight?.done ?? Promise.resolve()
    const done: Promise<void> = before
      .then(() => attempt(begun))
      .finally(() => {
        if (inFlight?.done === done) inFlight = undefined
        schedule()
      })
    inFlight = { attemptNumber: begun, done }
    return done
  }

  /** Is a current index available? */
  const isReady = (): boolean => acceptedAttempt === attemptNumber
  const mayAsk = (): boolean => options.clock.monotonic() - lastFailureMs >= options.retryAfterMs

  return {
    /** Begins the first refresh and the timer, which does not keep the process alive. */
    start: (): void => void refresh(),
    /** Marks the accepted index stale: `ready` waits for a response requested after this moment. */
    invalidate: (): void => {
      attemptNumber++
    },
    isReady,
    /** Resolves, never rejects, after an attempt when one is due; at once otherwise. */
    ready: async (): Promise<void> => {
      if (isReady()) return
      if (inFlight !== undefined || mayAsk()) await refresh()
    },
    refresh,
    close: async (): Promise<void> => {
      clearTimeout(timer)
      closing.abort()
      await inFlight?.done
    },
  }
}

const defaultIn = (schema: unknown): UpstreamDefault => {
  if (schema === undefined) return { kind: 'absent' }
  const value = ownMember(asMap(schema), 'default')
  return value === undefined || value === null ? { kind: 'none' } : { kind: 'value', value }
}

const unannounced: UpstreamDefault = { kind: 'unannounced' }

const sentWhole = (endpoint: Endpoint): Endpoint => ({
  ...endpoint,
  asSent: Object.fromEntries(Object.keys(endpoint.arguments).map((name) => [name, unannounced])),
})

/** More names than any route of WordPress has; those beyond count as undeclared. */
const maxAdded = 256

/**
 * An endpoint with the arguments that the upstream takes otherwise marked as such, and with those that it has besides. Filters such
 * as `rest_post_collection_params` change values and callbacks together, and the index shows the values only.
 */
const followEndpoint = (endpoint: Endpoint, theirs: JsonObject | undefined): Endpoint => {
  const registered = endpointWith(theirs, endpoint.methods[0])
  if (registered === undefined) return sentWhole(endpoint)
  const args = asMap(ownMember(registered, 'args'))
  const ours = asMap(ownMember(describeEndpoint(endpoint), 'args'))
  const asSent: Record<string, UpstreamDefault> = {}
  for (const name of Object.keys(ours)) {
    const their = ownMember(args, name)
    if (their === undefined || isArgumentTakenOtherwise(asMap(ownMember(ours, name)), asMap(their))) {
      asSent[name] = defaultIn(their)
    }
  }
  const addedNames = Object.keys(args)
    .filter((name) => !Object.hasOwn(ours, name))
    .slice(0, maxAdded)
  for (const name of addedNames) asSent[name] = { kind: 'none' }
  if (Object.keys(asSent).length === 0) return endpoint
  const more = Object.fromEntries(addedNames.map((name) => [name, {}]))
  return { ...endpoint, arguments: { ...endpoint.arguments, ...more }, asSent }
}

const followRow = (row: Row, theirs: JsonObject | undefined): Row => {
  if (row.handledBy !== 'upstream') return row
  const endpoints = row.endpoints.map((endpoint) => followEndpoint(endpoint, theirs))
  return endpoints.every((endpoint, at) => endpoint === row.endpoints[at]) ? row : { ...row, endpoints }
}

/** The contract's rows while the upstream has not announced its own: nothing is refused or dropped that it might take otherwise. */
export const rowsBeforeIndex = (rows: readonly Row[]): readonly Row[] =>
  rows.map((row) =>
    row.handledBy === 'upstream' ? { ...row, endpoints: row.endpoints.map(sentWhole) } : row,
  )

/** Does the upstream announce the route of a row? */
export const isRegisteredIn = (index: IndexDocument): ((row: Row) => boolean) => {
  const byTemplate = patternsByTemplate(index)
  return (row) => index.routes.has(row.pattern) || byTemplate.has(row.template.toLowerCase())
}

/** The contract's rows as the upstream takes them; those without a difference are the same objects. */
export const followIndex = (rows: readonly Row[], index: IndexDocument): readonly Row[] => {
  const byTemplate = patternsByTemplate(index)
  return rows.map((row) => {
    const pattern = index.routes.has(row.pattern) ? row.pattern : byTemplate.get(row.template.toLowerCase())
    return followRow(row, pattern === undefined ? undefined : index.routes.get(pattern))
  })
}

/** Rows that are compared in one piece: about a millisecond. */
const rowsOfPiece = 64

/** The rows with the objects of `last` where nothing has changed, so that what was computed for them stays valid. */
export function* withKeptRows(rows: readonly Row[], last: readonly Row[]): Pieces<readonly Row[]> {
  const before = new Map(last.map((row) => [row.pattern, row]))
  const kept: Row[] = []
  for (const row of rows) {
    const previousRow = before.get(row.pattern)
    kept.push(previousRow !== undefined && isDeepStrictEqual(previousRow, row) ? previousRow : row)
    if (kept.length % rowsOfPiece === 0) yield
  }
  return kept
}
