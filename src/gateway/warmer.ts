import type { Clock } from '../clock.ts'
import type { WarmedEvent } from '../exchange/events.ts'
import { arrived, type Received } from '../exchange/exchange.ts'
import type { Service } from '../exchange/service.ts'
import { type GatewayResponse, targetParts } from '../http/message.ts'

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

export type WarmerOptions = {
  readonly limits: WarmLimits
  readonly clock: Clock
  serviceNamed(name: string): Service | undefined
  /** The pipeline of the configuration in use, which is not closed before `end`. */
  begin(): { run(exchange: Received): Promise<GatewayResponse>; end(): void }
  readonly report: (event: WarmedEvent) => void
  /** Called when the last target has been fetched, with the number of targets by outcome. */
  readonly finished: (counts: Readonly<Record<Outcome, number>>) => void
}

const noCounts = (): Record<Outcome, number> => ({ fetched: 0, hit: 0, bypassed: 0, failed: 0, dropped: 0 })

/** A request of this machine itself, as clients find the service, without any credential. */
const anonymousGet = (service: Service, warm: WarmTarget, id: string, signal: AbortSignal) => {
  const { host, scheme, target } = warm
  const form = (host === '' ? undefined : service.atHost?.(host)) ?? service
  return arrived({
    id,
    origin: 'client',
    client: {
      address: '127.0.0.1',
      protocol: (scheme || form.publicRoot).startsWith('https') ? 'https' : 'http',
      viaTrustedProxy: false,
    },
    service: form,
    request: {
      method: 'GET',
      target: form.mount + target,
      fields: { host: form.publicHost, accept: '*/*', 'user-agent': 'trellis-warm' },
      content: undefined,
      signal,
    },
    ...targetParts(target),
  })
}

const outcomeOf = (status: number, { record: { cache } }: Received): Outcome => {
  if (status >= 400) return 'failed'
  if (cache === 'hit') return 'hit'
  return cache === 'bypass' || cache === 'none' ? 'bypassed' : 'fetched'
}

/** Fetches targets in the background with anonymous GETs through the pipeline, which stores the responses by its rules. */
export const createWarmer = (options: WarmerOptions) => {
  const { clock, limits, report } = options
  const waiting = new Map<string, WarmTarget>()
  const stop = new AbortController()
  let inFlight = 0
  let mayBeginAt = 0
  let timer: NodeJS.Timeout | undefined
  let counts = noCounts()
  let ids = 0

  const note = (service: string, outcome: Outcome): void => {
    counts[outcome] += 1
    report({ kind: 'warmed', service, outcome })
  }
  const fetchOne = async (target: WarmTarget): Promise<Outcome> => {
    const service = options.serviceNamed(target.service)
    if (service === undefined) return 'failed'
    ids += 1
    const exchange = anonymousGet(service, target, `warm-${ids}`, stop.signal)
    // To fetch it would change something.
    if (exchange.service.contract.policyFor('GET', exchange.path).effect === 'writes') return 'bypassed'
    const pipeline = options.begin()
    try {
      const { content, status } = await pipeline.run(exchange)
      // Read to its end: the store takes complete responses.
      if (content !== undefined && !Buffer.isBuffer(content)) for await (const _ of content);
      return outcomeOf(status, exchange)
    } catch {
      return 'failed'
    } finally {
      pipeline.end()
    }
  }
  const begin = async (target: WarmTarget): Promise<void> => {
    inFlight += 1
    note(target.service, await fetchOne(target))
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
      const [name, target] = next
      waiting.delete(name)
      void begin(target)
    }
  }

  return {
    /** Returns how many targets wait for their fetch or are fetched already; the others exceed the limit. */
    add: (targets: readonly WarmTarget[]) => {
      let added = 0
      for (const target of targets) {
        const name = JSON.stringify([target.service, target.host, target.scheme, target.target])
        if (waiting.size < limits.max || waiting.has(name)) {
          waiting.set(name, target)
          added += 1
        } else note(target.service, 'dropped')
      }
      proceed()
      return added
    },
    close: () => {
      clearTimeout(timer)
      waiting.clear()
      stop.abort()
    },
  }
}

export type Warmer = ReturnType<typeof createWarmer>
