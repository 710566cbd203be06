import { memoizeByObject } from '../http/memo.ts'
import type { ReceiptNonce, WriteReceipts } from '../service/contract.ts'
import { createServiceTable, type ServiceTable } from '../service/service-table.ts'
import { type Service, serviceAtHost } from './service.ts'

/**
 * The services of one configuration. A request holds the configuration snapshot that it began with; what its write reaches, and whether its
 * response may be stored, are questions to the newest one.
 */
export class ConfigSnapshot {
  readonly services: readonly Service[]
  readonly table: ServiceTable<Service>
  #next: ConfigSnapshot | undefined
  readonly #sharing: (servers: readonly string[]) => readonly Service[]

  constructor(services: readonly Service[]) {
    this.services = services
    this.table = createServiceTable(services, serviceAtHost)
    // Computed once for each upstream: every write needs them.
    this.#sharing = memoizeByObject((servers) =>
      services.filter(({ address }) => address.servers.some((server) => servers.includes(server))),
    )
  }

  /** Requests of this one may still be handled. */
  replaceBy(next: ConfigSnapshot): void {
    this.#next = next
  }

  /** Differs between configurations: what a write may change by the newest one is computed once for each. */
  get newest(): unknown {
    return this.#newestSnapshot
  }

  get #newestSnapshot(): ConfigSnapshot {
    let snapshot: ConfigSnapshot = this
    while (snapshot.#next !== undefined) snapshot = snapshot.#next
    return snapshot
  }

  /** Does the newest one have this service, with the same rules? */
  newestHas(service: Service): boolean {
    return this.#newestSnapshot.services.some(({ memo }) => memo === service.memo)
  }

  /** The service that has a public path at a host. */
  serviceAt(authority: string, target: string): Service | undefined {
    const choice = this.#newestSnapshot.table.find(authority, target)
    return choice.kind === 'found' ? choice.service : undefined
  }

  /**
   * The other services with one of the servers of a service, whose stored responses a write to it may make stale: a site behind its
   * interface and, for its pages and its administration, behind an open service. Of an open service these are the responses of the
   * same URLs at the upstream (RFC 9111 §4.4), of the others all. The service of the same name is one of them if a reload has built it
   * anew since the write began: its table may be another one.
   */
  sharing({ address, memo }: Service): readonly Service[] {
    return this.#newestSnapshot.#sharing(address.servers).filter((other) => other.memo !== memo)
  }

  /** For one request that writes; undefined where no receipt is to be expected. */
  newReceiptNonce(service: Service): ReceiptNonce | undefined {
    return this.#receiptsFor(service)?.newNonce()
  }

  /** Does a write to the service get a receipt of what it has changed? */
  getsReceipts(service: Service): boolean {
    return this.#receiptsFor(service)?.isCurrent() === true
  }

  /** Of the service, or of those that share its upstream; undefined where they have several. */
  #receiptsFor(service: Service): WriteReceipts | undefined {
    if (service.writeReceipts !== undefined) return service.writeReceipts
    const [first, ...others] = this.sharing(service).flatMap(({ writeReceipts }) => writeReceipts ?? [])
    return others.every(({ key }) => key === first?.key) ? first : undefined
  }

  /** Does one of the services at the same upstream have routes? */
  sharesRoutes(service: Service): boolean {
    return this.sharing(service).some(({ contract }) => contract.hasRoutes)
  }
}
