import type { PipelineEvent } from '../pipeline/events.ts'
import { createExchangeObserver } from './observe-exchanges.ts'
import type { Families } from './registry.ts'

/** Counts what the pipeline reports. */
export const createPipelineObserver = (families: Families): ((event: PipelineEvent) => void) => {
  const observeExchange = createExchangeObserver(families)
  return (event) => {
    switch (event.kind) {
      case 'exchange-finished':
        observeExchange(event)
        return
      case 'request-refused': {
        const { service, route, code } = event
        families.refusals.series({ service, route, code }).value += 1
        return
      }
      case 'target-canonicalised':
        families.canonicalMerges.series({ service: event.service }).value += 1
        return
      case 'undeclared-parameters': {
        const { service, handling } = event
        families.undeclaredParameters.series({ service, handling }).value += 1
        return
      }
      default:
        // A new kind of event does not compile until it is counted here.
        event satisfies never
    }
  }
}
