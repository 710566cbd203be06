import { setMaxListeners } from 'node:events'
import type { Clock } from '../../clock.ts'
import type { ConfigSnapshot } from '../../exchange/config-snapshot.ts'
import type { WarmedEvent } from '../../exchange/events.ts'
import type { HandleRequest } from '../../exchange/request-context.ts'
import { arrived, type RequestContext } from '../../exchange/request-context.ts'
import { serviceAtHost } from '../../exchange/service.ts'
import { queryParameters } from '../../http/form-text.ts'
import { headerValue } from '../../http/headers/header-lines.ts'
import type { GatewayRequest, GatewayResponse } from '../../http/message.ts'
import { targetParts } from '../../http/targets.ts'
import type { Contract } from '../../service/contract.ts'
import { isWrite } from '../../service/decide.ts'

/**
 * A target of a service to fetch; `host` is '' where responses are the same for all hosts of the service, `scheme` where it is that of
 * the public URL.
 */
export type WarmTarget = {
  readonly service: string
  readonly host: string
  readonly scheme: string
  readonly target: string
}

/** How many targets may wait, how many are fetched at once, and how many begin in a second. */
export type WarmLimits = { readonly max: number; readonly concurrency: number; readonly perSecond: number }

type Outcome = WarmedEvent['outcome']

/** `reason`: why a response was not stored; '' where it is. */
export type WarmResult = { readonly outcome: Outcome; readonly reason: string }

type Waiting = {
  readonly target: WarmTarget
  readonly result: Promise<WarmResult>
  settle(result: WarmResult): void
}

const waitingFor = (target: WarmTarget): Waiting => {
  let settle = (_result: WarmResult): void => {}
  const result = new Promise<WarmResult>((resolve) => {
    settle = resolve
  })
  return { target, result, settle }
}

export type WarmerOptions = {
  readonly limits: WarmLimits
  readonly clock: Clock
  /** The services of the configuration in use, which are not closed before `end`. */
  begin(): { readonly snapshot: ConfigSnapshot; readonly handle: HandleRequest; end(): void }
  readonly report: (event: WarmedEvent) => void
  /** Called when the last target has been fetched, with the number of targets by outcome. */
  readonly finished: (counts: Readonly<Record<Outcome, number>>) => void
}

const noCounts = (): Record<Outcome, number> => ({ fetched: 0, hit: 0, bypassed: 0, failed: 0, dropped: 0 })

/** A request of this machine itself, as clients find the service, without any credential. */
export const anonymousGet = (
  snapshot: ConfigSnapshot,
  warm: WarmTarget,
  {
    id,
    origin,
    headers,
    signal,
  }: Pick<RequestContext, 'id' | 'origin'> & Pick<GatewayRequest, 'headers' | 'signal'>,
) => {
  const { host, scheme, target } = warm
  const service = snapshot.services.find(({ name }) => name === warm.service)
  if (service === undefined) return undefined
  const form = host === '' ? service : serviceAtHost(service, host)
  return arrived({
    id,
    origin,
    client: {
      address: '127.0.0.1',
      protocol: (scheme || form.address.publicRoot).startsWith('https') ? 'https' : 'http',
      viaTrustedProxy: false,
    },
    snapshot,
    service: form,
    request: {
      method: 'GET',
      target: form.mount + target,
      headers: { host: form.address.publicHost, ...headers },
      content: undefined,
      signal,
    },
    ...targetParts(target),
  })
}

/**
 * Would fetching a target that a client has asked for use a secret of that client? Says so what keeps its response from being shared by
 * the contract of its service, such as a key, or what that service declares.
 */
export const hasClientSecret = (
  { secretParameters, uncacheableReasonOf }: Pick<Contract, 'secretParameters' | 'uncacheableReasonOf'>,
  target: string,
): boolean => {
  const { path, query } = targetParts(target)
  return (
    uncacheableReasonOf(path, query) !== undefined ||
    (secretParameters.length > 0 && queryParameters(query).some(([name]) => secretParameters.includes(name)))
  )
}

/** To fetch it would change something. */
export const isWrittenByGet = ({ service: { contract }, path, query }: RequestContext): boolean =>
  isWrite(contract, contract.policyFor('GET', path), {
    method: 'GET',
    uncacheable: contract.uncacheableReasonOf(path, query),
    sharesRoutes: () => true,
  })

const failed = (reason: string): WarmResult => ({ outcome: 'failed', reason })

const resultOf = (
  { status, headers }: GatewayResponse,
  { record: { cache, code } }: RequestContext,
): WarmResult => {
  if (status >= 400) return failed(code === undefined ? `status ${status}` : `status ${status}, ${code}`)
  if (cache === 'hit') return { outcome: 'hit', reason: '' }
  // Beside `fwd`, a detail is the reason that the response is not stored.
  const [, detail] = /; detail=([a-z-]+)$/.exec(headerValue(headers, 'cache-status') ?? '') ?? []
  return cache === 'bypass' || cache === 'none' || detail !== undefined
    ? { outcome: 'bypassed', reason: `not stored: ${detail ?? 'the gateway answers it itself'}` }
    : { outcome: 'fetched', reason: '' }
}

const dropped = (reason: string): WarmResult => ({ outcome: 'dropped', reason })

/** Fetches targets in the background with anonymous GETs through `handle`, which stores the responses by its rules. */
export const createWarmer = (options: WarmerOptions) => {
  const { clock, limits, report } = options
  const waiting = new Map<string, Waiting>()
  const stop = new AbortController()
  // Each fetch in flight listens; Node warns of more than ten.
  setMaxListeners(0, stop.signal)
  let inFlight = 0
  let mayBeginAt = 0
  let timer: NodeJS.Timeout | undefined
  let counts = noCounts()
  let ids = 0

  const reportOutcome = (service: string, outcome: Outcome): void => {
    counts[outcome] += 1
    report({ kind: 'warmed', service, outcome })
  }
  const fetchOne = async (target: WarmTarget): Promise<WarmResult> => {
    ids += 1
    const { snapshot, handle, end } = options.begin()
    try {
      const context = anonymousGet(snapshot, target, {
        id: `warm-${ids}`,
        origin: 'client',
        headers: { accept: '*/*', 'user-agent': 'trellis-warm' },
        signal: stop.signal,
      })
      if (context === undefined) return failed('its service is no longer configured')
      if (isWrittenByGet(context)) return { outcome: 'bypassed', reason: 'a GET of it changes something' }
      const response = await handle(context)
      const { content } = response
      // Read to its end: the store takes complete responses.
      if (content !== undefined && !Buffer.isBuffer(content)) for await (const _ of content);
      return resultOf(response, context)
    } catch {
      return failed('the response was incomplete')
    } finally {
      end()
    }
  }
  const begin = async ({ target, settle }: Waiting): Promise<void> => {
    inFlight += 1
    const result = await fetchOne(target)
    reportOutcome(target.service, result.outcome)
    settle(result)
    inFlight -= 1
    if (inFlight === 0 && waiting.size === 0 && !stop.signal.aborted) {
      options.finished(counts)
      counts = noCounts()
    } else proceed()
  }
  const proceed = (): void => {
    while (timer === undefined && inFlight < limits.concurrency) {
      const [next] = waiting
      if (next === undefined) return
      const now = clock.monotonic()
      if (now < mayBeginAt) {
        timer = setTimeout(() => {
          timer = undefined
          proceed()
        }, mayBeginAt - now)
        timer.unref()
        return
      }
      mayBeginAt = now + 1000 / limits.perSecond
      const [name, entry] = next
      waiting.delete(name)
      void begin(entry)
    }
  }

  return {
    /** `added`: how many targets wait for their fetch or are fetched already; the others exceed the limit. A result for each target. */
    add: (targets: readonly WarmTarget[]) => {
      let added = 0
      const results = targets.map((target) => {
        const name = JSON.stringify([target.service, target.host, target.scheme, target.target])
        const entry = waiting.get(name) ?? waitingFor(target)
        if (waiting.size < limits.max || waiting.has(name)) {
          waiting.set(name, entry)
          added += 1
          return entry.result
        }
        reportOutcome(target.service, 'dropped')
        return Promise.resolve(dropped('more URLs wait than cache.warm.max'))
      })
      proceed()
      return { added, results }
    },
    close: () => {
      clearTimeout(timer)
      for (const { settle } of waiting.values()) settle(dropped('the gateway is shutting down'))
      waiting.clear()
      stop.abort()
    },
  }
}

export type Warmer = ReturnType<typeof createWarmer>
