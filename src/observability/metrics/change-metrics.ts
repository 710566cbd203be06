import type { ChangeEvent } from '../../changes/events.ts'
import { counter, gauge, type MetricRow } from './metric-row.ts'
import type { Families } from './registry.ts'

/** Metrics of the change feeds. */
export const changeMetrics = {
  changesState: gauge(
    'changes_state',
    ['service', 'state'],
    '1 for the state of the change feed (`cold`, `heard`, `behind`, `silent`), 0 for the others.',
    'max',
  ),
  changesLag: gauge(
    'changes_lag_seconds',
    ['service'],
    'Time since the last poll after which every change was known.',
    'max',
  ),
  changesApplied: counter(
    'changes_applied_total',
    ['service', 'source'],
    'Changes that were applied, told by `push`, found by `poll`, or told in the `plain` form.',
  ),
  changesDropped: counter(
    'changes_dropped_entries_total',
    ['service', 'source'],
    'Stored responses that changes dropped.',
  ),
  changesServiceDrops: counter(
    'changes_service_drops_total',
    ['service', 'reason'],
    'Times everything of a service was dropped because its changes were not known, by reason.',
  ),
  changesRefused: counter(
    'changes_refused_total',
    ['service', 'reason'],
    'Requests to `/changes` that were refused, by reason.',
  ),
  changesPollFailures: counter(
    'changes_poll_failures_total',
    ['service', 'reason'],
    'Polls that brought no log, by reason.',
  ),
} as const satisfies Record<string, MetricRow>

/** Counts what happens to the change feeds. */
export const createChangeObserver =
  (families: Families) =>
  (event: ChangeEvent): void => {
    const { service } = event
    switch (event.kind) {
      case 'changes-applied': {
        const labels = { service, source: event.source }
        families.changesApplied.series(labels).value += event.changes
        families.changesDropped.series(labels).value += event.entries
        return
      }
      case 'service-dropped':
        families.changesServiceDrops.series({ service, reason: event.reason }).value += 1
        return
      case 'changes-refused':
        families.changesRefused.series({ service, reason: event.reason }).value += 1
        return
      case 'poll-failed':
        families.changesPollFailures.series({ service, reason: event.reason }).value += 1
        return
      case 'feed-state':
        return
      default:
        event satisfies never
    }
  }
