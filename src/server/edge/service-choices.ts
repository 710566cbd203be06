import type { IncomingMessage } from 'node:http'
import type { Service } from '../../exchange/service.ts'
import type { ServiceChoice, ServiceTable } from '../../service/service-table.ts'
import { authorityOf } from '../listener/read-request.ts'

export type Choice = ServiceChoice<Service>

export const serviceOf = (choice: Choice | undefined): Service | undefined =>
  choice?.kind === 'found' ? choice.service : undefined

/** Asks the service table which service a request is for: once for each request. */
export class ServiceChoices {
  readonly #table: Pick<ServiceTable<Service>, 'find'>
  /** Of requests for another protocol, which are looked at before Fastify gets them. */
  readonly #early = new WeakMap<IncomingMessage, Choice>()

  constructor(table: Pick<ServiceTable<Service>, 'find'>) {
    this.#table = table
  }

  of(incoming: IncomingMessage): Choice {
    return this.#early.get(incoming) ?? this.#table.find(authorityOf(incoming), incoming.url as string)
  }

  /** Before Fastify gets the request. */
  ofUpgrade(incoming: IncomingMessage): Choice {
    const choice = this.of(incoming)
    this.#early.set(incoming, choice)
    return choice
  }

  /** By what can be read of bytes that are no request. */
  ofPath(path: string): Choice {
    return this.#table.find('', path)
  }
}
