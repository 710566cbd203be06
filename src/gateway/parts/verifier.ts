import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { partsOfKey, shownTags } from '../../cache/cache-key.ts'
import {
  longestVerified,
  type StoredResponse,
  type Verification,
  verifiedStatuses,
  verifyingHeaders,
} from '../../cache/verification.ts'
import type { ConfigSnapshot } from '../../exchange/config-snapshot.ts'
import type { VerifiedEvent } from '../../exchange/events.ts'
import type { HandleRequest } from '../../exchange/request-context.ts'
import { bufferedResponse } from '../../http/bodies/read-body.ts'
import { unlimited } from '../../http/bounds/byte-budget.ts'
import { headerValue } from '../../http/headers/header-lines.ts'
import { parsedJson } from '../../http/json-text.ts'
import { createRecentValues } from '../../http/memo.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { Redaction } from '../../http/redaction.ts'
import { shortText } from '../../http/retained.ts'
import type { History } from '../../observability/history.ts'
import type { Log } from '../../observability/logger.ts'
import type { OperatorCache } from '../admin/operator-cache.ts'
import { anonymousGet, hasClientSecret, isWrittenByGet } from './warmer.ts'

type Outcome = VerifiedEvent['outcome']

type Difference = {
  readonly stored: StoredResponse
  readonly service: string
  readonly target: string
  readonly ageMs: number
}

type VerifierOptions = {
  readonly verification: Verification
  readonly perSecond: number
  /** The longest time that others may take to hear of a write that the upstream has answered. */
  readonly broadcastMs: number
  /** The services of the configuration in use, which are not closed before `end`. */
  begin(): { readonly snapshot: ConfigSnapshot; readonly handle: HandleRequest; end(): void }
  readonly report: (event: VerifiedEvent) => void
  /** Drops what the stored response shows, everywhere. */
  readonly differed: (difference: Difference) => Promise<unknown>
  /** No two responses of the target are the same. */
  readonly varies: (difference: Difference) => void
}

type Fetched = { readonly status: number; readonly content: Buffer }

/** Differences that wait for a write that may explain them: more would hold more responses. */
const maxUnderWay = 32
const maxVarying = 2_000
const sampleSize = 32
/** Where an upstream may take any time. */
const longestWriteMs = 120_000

/** The same status, and the same bytes or the same JSON value. */
const meansTheSame = (first: Fetched, second: Fetched): boolean => {
  if (first.status !== second.status) return false
  if (first.content.equals(second.content)) return true
  const value = parsedJson(first.content.toString())
  return value !== undefined && isDeepStrictEqual(value, parsedJson(second.content.toString()))
}

const isCoded = (head: ResponseHead): boolean => headerValue(head.headers, 'content-encoding') !== undefined

/**
 * Fetches stored responses again, at a steady rate, and compares. A difference counts when every write that may explain it has ended
 * and has removed nothing of it: a write that the upstream has carried out, but not answered, shows in what is fetched, and not yet in
 * what is stored.
 */
class Verifier {
  readonly #options: VerifierOptions
  readonly #stop = new AbortController()
  readonly #varying = createRecentValues<true>(maxVarying)
  #waiting: StoredResponse[] = []
  readonly #underWay = new Set<string>()
  #ids = 0
  readonly #timer: NodeJS.Timeout | undefined

  constructor(options: VerifierOptions) {
    this.#options = options
    setMaxListeners(0, this.#stop.signal)
    this.#timer =
      this.#options.perSecond === 0
        ? undefined
        : setInterval(this.#next, 1_000 / this.#options.perSecond).unref()
  }

  close(): void {
    clearInterval(this.#timer)
    this.#stop.abort()
  }

  #mayFetch(stored: StoredResponse): boolean {
    const { service: name, target } = partsOfKey(stored.key)
    const { snapshot, end } = this.#options.begin()
    const service = snapshot.services.find((candidate) => candidate.name === name)
    end()
    return service !== undefined && !hasClientSecret(service.contract, target)
  }

  async #fetchAgain(stored: StoredResponse): Promise<Fetched | undefined> {
    this.#ids += 1
    const { snapshot, handle, end } = this.#options.begin()
    try {
      const context = anonymousGet(snapshot, partsOfKey(stored.key), {
        id: `verify-${this.#ids}`,
        origin: 'verify',
        headers: verifyingHeaders,
        signal: this.#stop.signal,
      })
      if (context === undefined) return undefined
      const { access, contract } = context.service
      const { profile } = contract.policyFor('GET', context.path)
      // What a client's credential may have made for all cannot be fetched without it.
      if (isWrittenByGet(context) || profile !== 'safe' || access !== undefined) return undefined
      const response = await bufferedResponse(await handle(context), longestVerified, unlimited)
      const { content = Buffer.alloc(0) } = response
      if (!Buffer.isBuffer(content)) {
        content.destroy()
        return undefined
      }
      if (isCoded(response) || !verifiedStatuses.has(response.status)) return undefined
      return { status: response.status, content }
    } catch {
      return undefined
    } finally {
      end()
    }
  }

  /** Until a write that had been sent when the wait began has ended, or has an unknown outcome, and all have acknowledged it. */
  async #writesHaveEnded(service: string): Promise<void> {
    const { snapshot, end } = this.#options.begin()
    const { upstreamMs } = snapshot.services.find(({ name }) => name === service)?.limits ?? {}
    end()
    const ms = (upstreamMs || longestWriteMs) + this.#options.broadcastMs
    await sleep(ms, undefined, { signal: this.#stop.signal, ref: false })
  }

  /** What the response differs by is no write: is it the response, or are no two the same? */
  async #judge(stored: StoredResponse, first: Fetched, since: number): Promise<Outcome> {
    const second = await this.#fetchAgain(stored)
    if (!this.#options.verification.stands(stored, since)) return 'overtaken'
    if (second === undefined) return 'failed'
    if (meansTheSame(second, stored)) return 'same'
    if (meansTheSame(second, first)) return 'differed'
    if (this.#options.verification.sequence() === since) return 'varies'
    // Something was written meanwhile, which may explain the second difference, but not the first.
    const third = await this.#fetchAgain(stored)
    if (!this.#options.verification.stands(stored, since) || third === undefined) return 'overtaken'
    return meansTheSame(third, second) ? 'differed' : 'overtaken'
  }

  async #verify(stored: StoredResponse, service: string): Promise<Outcome> {
    const since = this.#options.verification.sequence()
    const first = await this.#fetchAgain(stored)
    if (first === undefined) return 'failed'
    if (meansTheSame(first, stored)) return 'same'
    await this.#writesHaveEnded(service)
    return this.#options.verification.stands(stored, since) ? this.#judge(stored, first, since) : 'overtaken'
  }

  async #check(stored: StoredResponse): Promise<void> {
    const { service, target } = partsOfKey(stored.key)
    this.#underWay.add(stored.key)
    try {
      const outcome = await this.#verify(stored, service)
      const difference = { stored, service, target, ageMs: this.#options.verification.ageMs(stored) }
      if (outcome === 'differed') await this.#options.differed(difference)
      if (outcome === 'varies') {
        this.#varying.set(stored.key, true)
        this.#options.varies(difference)
      }
      this.#options.report({ kind: 'verified', service, outcome })
    } catch {
      // The gateway is closing.
    } finally {
      this.#underWay.delete(stored.key)
    }
  }

  readonly #next = (): void => {
    if (this.#underWay.size >= maxUnderWay) return
    if (this.#waiting.length === 0) this.#waiting = [...this.#options.verification.sample(sampleSize)]
    const stored = this.#waiting.pop()
    if (stored === undefined || this.#underWay.has(stored.key) || this.#varying.get(stored.key) === true)
      return
    if (this.#mayFetch(stored) && this.#options.verification.isServed(stored)) void this.#check(stored)
  }
}

export const createVerifier = (options: VerifierOptions) => new Verifier(options)

const maxTags = 200
const maxShownTags = 12
const shownWrites = 5

type DropParts = {
  readonly cache: Pick<OperatorCache, 'purge'>
  readonly history: Pick<History, 'recent' | 'purged'>
  readonly logger: Pick<Log, 'error'>
  readonly redaction: Redaction
}

/** Logs a difference with the last writes, and drops everything that has something in common with the response, everywhere. */
export const dropDiffering =
  ({ cache, history, logger, redaction }: DropParts): VerifierOptions['differed'] =>
  async ({ stored, service, target, ageMs }) => {
    const { tags } = stored
    const shown = redaction.target(target)
    const writes = history.recent().invalidations.slice(0, shownWrites)
    const all = { kind: 'prefix', service, prefixes: [''] } as const
    const byTag = tags.map((tag) => ({ kind: 'tag', tag }) as const)
    const selectors = tags.length > maxTags ? [all] : [{ kind: 'target', service, target } as const, ...byTag]
    const entries = await cache.purge({ selectors, mode: 'hard', dryRun: false })
    history.purged({ cause: 'verify', reach: shown, entries: entries === 'unacknowledged' ? 0 : entries })
    logger.error(
      {
        service,
        target: shown,
        ageSeconds: Math.floor(ageMs / 1_000),
        tags: shownTags(tags, [stored.key])
          .slice(0, maxShownTags)
          .map((tag) => shortText(redaction.target(tag))),
        entries: entries === 'unacknowledged' ? 0 : entries,
        writes: writes.map(({ at, by, cause, reach }) => ({ at, by, cause, reach })),
      },
      'verified-differs',
    )
  }
