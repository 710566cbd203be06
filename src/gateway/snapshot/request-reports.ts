import { type ErrorCode, type ErrorFacts, errorTable, type GatewayError } from '../../errors.ts'
import type { ExchangeEvent } from '../../exchange/events.ts'
import type { RequestContext } from '../../exchange/request-context.ts'
import type { AccessLog } from '../../observability/access-log.ts'
import { type FactsLogger, factsLogger } from '../../observability/logger.ts'
import type { RefusedEarly } from '../../server/edge-options.ts'
import type { Observation } from '../parts/observation.ts'

/** Codes outside the error table come from validators: the client's fault. */
const faultOf = (code: string): ErrorFacts['fault'] =>
  code in errorTable ? errorTable[code as ErrorCode].fault : 'client'

type ReportParts = Pick<Observation, 'logger' | 'metrics' | 'sampled'> & {
  readonly accessLog: AccessLog | undefined
}

/** Reports requests to metrics and log. Clients decide how many fail: one log line for each service and code in ten seconds. */
export class RequestReports {
  readonly #lasting: ReportParts
  readonly #lines: FactsLogger

  constructor(lasting: ReportParts) {
    this.#lasting = lasting
    this.#lines = factsLogger(lasting.logger)
  }

  report(event: ExchangeEvent): void {
    this.#lasting.metrics.observe.exchange(event)
    switch (event.kind) {
      case 'undeclared-parameters': {
        const { service, count, handling, kind } = event
        const held = handling === 'stripped' ? this.#admitLine(service, kind) : undefined
        if (held !== undefined) this.#lines.info({ service, count, held }, 'parameters-stripped')
        return
      }
      case 'access-refused': {
        if (this.#lasting.accessLog !== undefined) return
        const { kind, service, reason } = event
        const held = this.#admitLine(service, `${kind} ${reason}`)
        if (held !== undefined) this.#lines.info({ service, reason, held }, kind)
        return
      }
      case 'request-refused':
        this.#logRefusal(event)
    }
  }

  /** A fault of the gateway or an upstream. */
  failed(error: GatewayError, { id, service, record }: RequestContext): void {
    if (error.facts.fault === 'client') return
    const held = this.#admitLine(service.name, error.code)
    if (held === undefined) return
    this.#lasting.logger.warn(
      { held, id, service: service.name, route: record.route, code: error.code, err: error.cause },
      'request-failed',
    )
  }

  /** A request that did not reach `handle`. */
  refusedEarly({ id, service, error, client, request }: RefusedEarly): void {
    const { code, facts } = error
    const refusal = { id, service: service?.name ?? 'none', code, status: facts.status }
    this.report({ kind: 'request-refused', route: 'unmatched', origin: 'client', ...refusal })
    this.#lasting.accessLog?.refused({ ...refusal, address: client.address, request })
  }

  #logRefusal({ kind, ...facts }: Extract<ExchangeEvent, { kind: 'request-refused' }>): void {
    // `failed` logs faults of the gateway or an upstream, with their cause.
    if (faultOf(facts.code) !== 'client') return
    // The access line of the request has the code.
    if (this.#lasting.accessLog !== undefined && facts.origin === 'client') return
    const held = this.#admitLine(facts.service, facts.code)
    if (held !== undefined) this.#lines.info({ ...facts, held }, kind)
  }

  /** Undefined: no line now; otherwise the number of lines held back before it. */
  #admitLine(service: string, code: string): number | undefined {
    return this.#lasting.sampled.pass(`${service} ${code}`)
  }
}
