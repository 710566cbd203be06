import type { UpstreamEvent } from '../upstream/events.ts'
import type { Families } from './registry.ts'
import { observeValue } from './series.ts'

type Attempt = Extract<UpstreamEvent, { kind: 'attempt-finished' }>

const observeAttempt = (families: Families, event: Attempt): void => {
  const { service, target, outcome } = event
  families.upstreamAttempts.series({ service, target, outcome, status_class: event.statusClass }).value += 1
  if (event.headSeconds !== undefined) {
    observeValue(families.upstreamHeadSeconds.series({ service, target }), event.headSeconds)
  }
  observeValue(families.upstreamSeconds.series({ service, target }), event.durationSeconds)
}

/** Counts what the upstreams report. */
export const createUpstreamObserver =
  (families: Families) =>
  (event: UpstreamEvent): void => {
    const { service } = event
    switch (event.kind) {
      case 'attempt-finished':
        observeAttempt(families, event)
        return
      case 'retried':
        families.upstreamRetries.series({ service, target: event.target, reason: event.reason }).value += 1
        return
      case 'gave-up':
        families.upstreamGaveUp.series({ service, target: event.target, reason: event.reason }).value += 1
        return
      case 'slot-wait-finished':
        families.upstreamQueued.series({ service, outcome: event.outcome }).value += 1
        observeValue(families.upstreamQueueSeconds.series({ service }), event.waitedSeconds)
        return
      case 'breaker-changed':
        families.upstreamBreakerChanges.series({ service, to: event.to }).value += 1
        return
      case 'breaker-refused':
        families.upstreamBreakerRefused.series({ service }).value += 1
        return
      case 'target-changed':
        families.upstreamTargetChanges.series({
          service,
          target: event.target,
          change: event.change,
        }).value += 1
        return
      default:
        // A new kind of event does not compile until it is counted here.
        event satisfies never
    }
  }
