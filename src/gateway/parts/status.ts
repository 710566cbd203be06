import type { Notice, ReloadOutcome } from '../../admin/operator.ts'
import type { Readiness } from '../../admin/readiness.ts'
import { decideReadiness } from '../../admin/readiness.ts'
import type { Coherence } from '../../cluster/coherence.ts'
import type { WorkerLink } from '../../cluster/worker-link.ts'
import { configWarnings } from '../load-config.ts'
import { refusedRoutes } from '../snapshot/build-service.ts'
import { refusedReload } from '../snapshot/reload.ts'
import type { UpstreamIssue } from '../upstream-issues.ts'
import { workerStatus } from '../workers.ts'
import { type ConnectedFeeds, feedNotices } from './change-feeds.ts'
import type { CurrentSnapshot } from './current-snapshot.ts'
import type { Downstreams } from './downstreams.ts'

type StatusParts = {
  readonly current: CurrentSnapshot
  readonly worker: WorkerLink | undefined
  readonly coherence: Coherence | undefined
  readonly downstreams: Pick<Downstreams, 'statuses'>
  readonly feeds: Pick<ConnectedFeeds, 'statuses'>
}

/** What the admin side says of the gateway: is it ready, and what should its operator look at? */
export class GatewayStatus {
  readonly #parts: StatusParts
  /** By service and kind: the check finds at most one of each. */
  readonly #issues = new Map<string, UpstreamIssue>()
  #lastReload: ReloadOutcome | undefined
  isDraining = false

  constructor(parts: StatusParts, issues: readonly UpstreamIssue[]) {
    this.#parts = parts
    for (const issue of issues) this.recordIssue(issue)
  }

  recordIssue(issue: UpstreamIssue): void {
    this.#issues.set(`${issue.service} ${issue.kind}`, issue)
  }

  /** The issues were those of another configuration. */
  forgetIssues(): void {
    this.#issues.clear()
  }

  reloaded(outcome: ReloadOutcome): void {
    this.#lastReload = outcome
  }

  readiness(): Readiness {
    const { current, worker, coherence, downstreams, feeds } = this.#parts
    const { starting, workersMissing } = workerStatus(worker)
    return decideReadiness({
      draining: this.isDraining,
      lastReloadRefused: refusedReload(this.#lastReload).length > 0,
      servicesDown: current.servicesThat('down'),
      servicesUnknown: current.servicesThat('unknown'),
      starting: starting || coherence?.isJoining() === true,
      workersMissing,
      memoryTrusted: coherence?.noLease() === undefined,
      silentFeeds: feeds
        .statuses()
        .filter(({ state }) => state !== 'heard')
        .map(({ service }) => service),
      laggingServices: downstreams.statuses().filter(({ isLagging }) => isLagging),
      findings: [
        ...configWarnings(current.config).map(({ path }) => ({ finding: 'config', setting: path }) as const),
        ...[...this.#issues.values()].map(({ service, kind }) => ({ finding: kind, service })),
      ],
    })
  }

  notices(): readonly Notice[] {
    const { current, feeds } = this.#parts
    return [
      ...refusedReload(this.#lastReload),
      ...configWarnings(current.config).map(({ path, message }) => ({ subject: path, text: message })),
      ...[...this.#issues.values()].map(({ service, text }) => ({ subject: service, text })),
      ...refusedRoutes(current.services),
      ...feedNotices(feeds),
    ]
  }
}
