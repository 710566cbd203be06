import type { Config } from '../../config/config.ts'
import type { Service } from '../../exchange/service.ts'
import type { BuiltService } from '../snapshot/build-service.ts'
import type { BuiltSnapshot } from '../snapshot/snapshot.ts'

/** Holds the configuration snapshot that handles requests; until the first one is built, only its configuration. */
export class CurrentSnapshot {
  /** Earlier snapshots, which finish their requests. */
  readonly #ending = new Set<BuiltSnapshot>()
  readonly #firstConfig: Config
  #snapshot: BuiltSnapshot | undefined

  constructor(config: Config) {
    this.#firstConfig = config
  }

  get(): BuiltSnapshot {
    if (this.#snapshot === undefined) throw new TypeError('no configuration snapshot has been built')
    return this.#snapshot
  }

  get config(): Config {
    return this.#snapshot?.config ?? this.#firstConfig
  }

  /** In the order of the configuration. */
  get services(): readonly BuiltService[] {
    return this.#snapshot?.built ?? []
  }

  serviceNamed(name: string): Service | undefined {
    return this.services.find(({ service }) => service.name === name)?.service
  }

  /** Services of which no useful response can be expected, or of which nobody knows. */
  servicesThat(are: 'down' | 'unknown'): readonly string[] {
    return this.services
      .filter(({ service }) => service.upstream.snapshot()[are])
      .map(({ service }) => service.name)
  }

  /** The gateway's own documents of a site may predate a write in another process. */
  markDocumentsStale(service: string, collection: string): void {
    this.serviceNamed(service)?.documents?.written(collection)
  }

  replaceBy(next: BuiltSnapshot): void {
    if (this.#snapshot !== undefined) this.#ending.add(this.#snapshot)
    this.#snapshot = next
  }

  ended(last: BuiltSnapshot): void {
    this.#ending.delete(last)
  }

  /** Services of earlier configurations whose upstreams the current one does not use, each upstream once. */
  replacedServices(): readonly BuiltService[] {
    const used = new Set(this.services.map(({ upstream }) => upstream))
    const replaced = new Map(
      [...this.#ending].flatMap(({ built }) => built.map((service) => [service.upstream, service])),
    )
    return [...replaced.values()].filter(({ upstream }) => !used.has(upstream))
  }

  /** Begins a request of the gateway itself: the snapshot is not closed before `end`. */
  beginOwnRequest() {
    const { inFlight, handle, snapshot } = this.get()
    inFlight.enter()
    return { handle, snapshot, end: inFlight.leave }
  }
}
