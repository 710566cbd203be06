import type { UpstreamEvent } from '../../upstream/events.ts'
import { type Families, type HistogramSeries, type NumberSeries, observeValue } from './registry.ts'

type Attempt = Extract<UpstreamEvent, { kind: 'attempt-finished' }>

/** The series of each attempt and each wait for a slot, resolved once. */
type TargetSeries = {
  readonly head: HistogramSeries
  readonly whole: HistogramSeries
  readonly ended: Map<string, NumberSeries>
}

const createAttemptObserver = (families: Families): ((event: Attempt) => void) => {
  const services = new Map<string, Map<string, TargetSeries>>()

  const resolve = (service: string, target: string): TargetSeries => {
    const targets = services.get(service) ?? new Map<string, TargetSeries>()
    services.set(service, targets)
    const made = {
      head: families.upstreamHeadSeconds.series({ service, target }),
      whole: families.upstreamSeconds.series({ service, target }),
      ended: new Map<string, NumberSeries>(),
    }
    targets.set(target, made)
    return made
  }
  return ({ service, target, outcome, statusClass, headSeconds, durationSeconds }) => {
    const series = services.get(service)?.get(target) ?? resolve(service, target)
    const how = outcome + statusClass
    let ended = series.ended.get(how)
    if (ended === undefined) {
      ended = families.upstreamAttempts.series({ service, target, outcome, status_class: statusClass })
      series.ended.set(how, ended)
    }
    ended.value += 1
    if (headSeconds !== undefined) observeValue(series.head, headSeconds)
    observeValue(series.whole, durationSeconds)
  }
}

type SlotWait = Extract<UpstreamEvent, { kind: 'slot-wait-finished' }>

/** As for attempts: the series of waits, resolved once for each service. */
const createSlotObserver = (families: Families): ((event: SlotWait) => void) => {
  const services = new Map<string, { waits: Map<string, NumberSeries>; seconds: HistogramSeries }>()
  const resolve = (service: string) => {
    const made = {
      waits: new Map<string, NumberSeries>(),
      seconds: families.upstreamQueueSeconds.series({ service }),
    }
    services.set(service, made)
    return made
  }
  return ({ service, outcome, waitedSeconds }) => {
    const { waits, seconds } = services.get(service) ?? resolve(service)
    let ended = waits.get(outcome)
    if (ended === undefined) {
      ended = families.upstreamQueued.series({ service, outcome })
      waits.set(outcome, ended)
    }
    ended.value += 1
    observeValue(seconds, waitedSeconds)
  }
}

/** Counts events of the upstreams. */
export const createUpstreamObserver = (families: Families): ((event: UpstreamEvent) => void) => {
  const observeAttempt = createAttemptObserver(families)
  const observeWait = createSlotObserver(families)
  return (event) => {
    const { service } = event
    switch (event.kind) {
      case 'attempt-finished':
        observeAttempt(event)
        return
      case 'retried':
        families.upstreamRetries.series({ service, target: event.target, reason: event.reason }).value += 1
        return
      case 'gave-up':
        families.upstreamGaveUp.series({ service, target: event.target, reason: event.reason }).value += 1
        return
      case 'slot-wait-finished':
        observeWait(event)
        return
      case 'slow-client-ended':
        families.upstreamSlowClients.series({ service, wait: event.wait }).value += 1
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
          to: event.to,
        }).value += 1
        return
      case 'check-finished':
        families.upstreamChecks.series({ service, target: event.target, result: event.result }).value += 1
        return
      default:
        // A new kind of event does not compile until it is counted here.
        event satisfies never
    }
  }
}
