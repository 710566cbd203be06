import { setTimeout as sleep } from 'node:timers/promises'
import type { ReloadOutcome } from '../admin/operator.ts'
import type { DrainStart } from '../cluster/worker-link.ts'
import { ratePerSecond } from '../config/quantities.ts'
import { AdminSide } from './admin/admin-side.ts'
import { within } from './closing.ts'
import type { Gateway } from './gateway-options.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { createVerifier, dropDiffering } from './parts/verifier.ts'
import { type UpstreamIssue, warnOf } from './upstream-issues.ts'
import { reloadEverywhere, serveWorkers, workersOf } from './workers.ts'

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host)

const startVerifier = ({ config, current, observation, options, operatorCache, storage }: GatewayParts) => {
  const { history, logger, metrics, redaction } = observation
  const processes = options.worker === undefined ? 1 : workersOf(config)
  return createVerifier({
    verification: storage.cache.verification,
    perSecond: (ratePerSecond(config.cache.verify.rate) ?? 0) / processes,
    broadcastMs: config.cache.shared.leaseMs,
    begin: () => current.beginOwnRequest(),
    report: metrics.observe.exchange,
    differed: dropDiffering({ cache: operatorCache, history, logger, redaction }),
    varies: ({ service, target }) =>
      logger.info({ service, target: redaction.target(target) }, 'verified-varies'),
  })
}

/** A gateway whose parts are built: it listens, answers the other workers, and ends. */
export class RunningGateway {
  readonly #parts: GatewayParts
  readonly #publicPort: number
  readonly #reload: () => Promise<ReloadOutcome>
  readonly #admin: AdminSide
  #verifier: ReturnType<typeof createVerifier> | undefined

  constructor(parts: GatewayParts, publicPort: number, reload: () => Promise<ReloadOutcome>) {
    const { worker, end } = parts.options
    this.#parts = parts
    this.#publicPort = publicPort
    this.#reload = reload
    this.#admin = new AdminSide(parts, {
      reload: worker === undefined ? reload : () => reloadEverywhere(worker),
      drain: end ?? (() => void this.#drain()),
    })
  }

  /** Joins the other processes, starts what runs in the background, and opens both ports. */
  async run(): Promise<Gateway> {
    const { config, current, feeds, publicSide, storage } = this.#parts
    this.#serveWorkers()
    this.#verifier = startVerifier(this.#parts)
    await storage.coherence?.start()
    feeds.useBuilt(current.services)
    try {
      await publicSide.port.listen(config.listen.host, this.#publicPort)
      await this.#admin.listen()
    } catch (error) {
      // Close everything that was opened, for example when a port is in use.
      await Promise.all([publicSide.port.close(0), this.#admin.close(), this.#closeParts()])
      throw error
    }
    return this.#running()
  }

  #running(): Gateway {
    const { admin, listen } = this.#parts.config
    const scheme = listen.tls.cert.isSet ? 'https' : 'http'
    return {
      publicAddress: `${scheme}://${urlHost(listen.host)}:${this.#publicPort}`,
      adminAddress: `http://${urlHost(admin.host)}:${this.#admin.port}`,
      reload: this.#reload,
      warn: (issue) => this.#warn(issue),
      faulted: (cause) => this.#faulted(cause),
      drain: (start) => this.#drain(start),
      close: async () => {
        await this.#drain()
      },
    }
  }

  #serveWorkers(): void {
    const { feeds, observation, options, status, storage, warmer } = this.#parts
    const { history, logLevel, metrics } = observation
    options.worker?.onRequest(
      serveWorkers({
        ...{ warmer, metrics },
        cache: storage.cache,
        openWrites: storage.writes.open,
        diagnosis: { history, logLevel },
        reload: this.#reload,
        issueFound: (issue) => status.recordIssue(issue),
        applyFeedMessage: feeds.receiveMessage,
      }),
    )
  }

  #warn(issue: UpstreamIssue): void {
    this.#parts.status.recordIssue(issue)
    warnOf(this.#parts.observation.logger, issue)
  }

  #faulted(cause: unknown): void {
    const { logger, metrics } = this.#parts.observation
    metrics.observe.lifecycle({ kind: 'process-fault' })
    logger.fatal({ err: cause }, 'process-fault')
  }

  async #drain(start: DrainStart = 'after-delay'): Promise<'finished' | 'cut'> {
    const { current, publicSide, status } = this.#parts
    status.isDraining = true
    const { delayMs, timeoutMs } = current.config.drain
    if (start === 'after-delay') await sleep(delayMs)
    publicSide.websockets.drain()
    const outcome = await publicSide.port.close(timeoutMs)
    await Promise.all([this.#closeParts(), this.#admin.close()])
    return outcome
  }

  async #closeParts(): Promise<void> {
    const { current, feeds, observation, storage, warmer } = this.#parts
    const { cache, coherence, downstreams, membership } = storage
    this.#verifier?.close()
    warmer.close()
    feeds.close()
    await within(downstreams.close())
    await within(current.get().close([]))
    await within(observation.watches.close())
    if (coherence !== undefined) await within(coherence.close())
    membership?.close()
    cache.close()
    observation.history.close()
  }
}
