import type { AddressInfo } from 'node:net'
import { createDiagnosis } from '../../admin/diagnosis.ts'
import type { AdminEvent } from '../../admin/events.ts'
import type { Operator } from '../../admin/operator.ts'
import { createAdmin } from '../../admin/server.ts'
import { within } from '../closing.ts'
import type { GatewayParts } from '../gateway-parts.ts'
import { openWebSockets } from '../parts/public-side.ts'
import { metricsOf, scrapeOf } from '../workers.ts'
import { currentOperator } from './operator.ts'
import { operatorBuilds } from './operator-builds.ts'

/** Values that metrics read at each scrape. */
const readAtScrape = ({
  current,
  options,
  observation,
  publicSide,
  storage,
  feeds,
  status,
}: GatewayParts) => {
  const { worker } = options
  const { buffered, cache, downstreams, maxBytes } = storage
  const { inFlight, port } = publicSide
  observation.metrics.readAtScrape({
    publicSide: () => ({ ...port.traffic(), inFlight: inFlight.count, draining: status.isDraining }),
    bufferedBytes: () => buffered.bytes,
    websockets: () => openWebSockets(current, publicSide),
    changes: feeds.statuses,
    receivers: downstreams.statuses,
    cache: () => ({ ...cache.stats(), maxBytes }),
    upstreams: () =>
      current.services.map(({ service }) => ({ service: service.name, ...service.upstream.snapshot() })),
    replacedUpstreams: () =>
      current.replacedServices().map(({ service }) => ({
        service: service.name,
        ...service.upstream.snapshot(),
      })),
    ...(worker === undefined ? {} : { workers: worker.status }),
  })
}

/** The admin port: it shows the status of the gateway, and takes the orders of its operator. */
export class AdminSide {
  readonly #server: ReturnType<typeof createAdmin>
  readonly #address: { readonly host: string; readonly port: number }

  constructor(parts: GatewayParts, orders: Pick<Operator, 'reload' | 'drain'>) {
    const { clock, config, current, feeds, observation, options, status } = parts
    const { history, logger, logLevel, metrics, sampled } = observation
    const { worker } = options
    readAtScrape(parts)
    this.#address = config.admin
    this.#server = createAdmin({
      logger,
      token: config.admin.token.reveal(),
      operator: currentOperator(
        () => current.get().operator,
        { ...orders, changes: feeds, builds: operatorBuilds(parts.operatorCache) },
        { ...createDiagnosis({ history, logLevel, now: clock.now, worker }), purged: history.purged },
      ),
      scrape: (accept) => scrapeOf(worker, metrics, accept),
      metrics: () => metricsOf(worker, metrics),
      readiness: () => status.readiness(),
      notices: () => status.notices(),
      report: (event: AdminEvent) => {
        const { kind, ...facts } = event
        const held = event.kind === 'admin-refused' ? sampled.pass(`${kind} ${event.reason}`) : 0
        if (held !== undefined) logger.info({ ...facts, ...(held === 0 ? {} : { held }) }, kind)
      },
    })
  }

  /** The port in use. */
  get port(): number {
    return (this.#server.server.address() as AddressInfo).port
  }

  async listen(): Promise<void> {
    const { host, port } = this.#address
    await this.#server.listen({
      host,
      port,
      listenTextResolver: (address) => `admin side listens on ${address}`,
    })
  }

  /** A client that sends half a request, or reads nothing, would keep the process from ending. */
  async close(): Promise<void> {
    const closed = this.#server.close()
    await within(closed)
    this.#server.server.closeAllConnections()
    await closed
  }
}
