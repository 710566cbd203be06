import type { ReceiverStatus } from '../downstream/events.ts'

/**
 * A condition that clients may notice although the gateway is ready. `upstreams`: no target of the service accepts requests, so only
 * stored responses are served. `config`: the last reload was refused, so the file differs from the configuration in use. `shared`:
 * nothing is served from memory, because invalidations of other writers do not arrive. `workers`: one has ended, and its successor is not
 * ready yet. `changes`: not every change behind the gateway is known, so stored responses of the service are used for the ordinary
 * time only. `downstream`: a cache in front of the service has not confirmed a purge, and may show older data.
 */
type Degradation = {
  readonly reason: 'upstreams' | 'config' | 'shared' | 'workers' | 'changes' | 'downstream'
  readonly service?: string
  /** The receiver that lags, one of its instances where it has several, and why. */
  readonly receiver?: string
  readonly address?: string | undefined
  readonly cause?: string | undefined
}

/** A warning about the configuration, or a mismatch between a service and its upstream; the log has the details. */
export type ReadinessIssue = {
  readonly finding: string
  readonly service?: string
  readonly setting?: string
}

/**
 * `reasons`: why no requests should be sent here; `unknown`: services whose upstream has not been contacted; `issues` without
 * texts, since every client of the admin side may read this.
 */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly ('draining' | 'starting')[]
  readonly degraded: readonly Degradation[]
  readonly findings: readonly ReadinessIssue[]
  readonly unknown: readonly string[]
}

export type ReadinessFacts = {
  readonly draining: boolean
  readonly lastReloadRefused: boolean
  /** Services without a target that accepts requests. */
  readonly servicesDown: readonly string[]
  /** Services of which no target has been contacted. */
  readonly servicesUnknown: readonly string[]
  /** Not all workers have been ready once, or the shared store has granted no lease yet. */
  readonly starting: boolean
  readonly workersMissing: boolean
  /** May responses be served from memory? */
  readonly memoryTrusted: boolean
  /** Services whose change feed cannot be read. */
  readonly silentFeeds: readonly string[]
  /** Services with a cache in front that has not confirmed a purge. */
  readonly laggingServices: readonly ReceiverStatus[]
  readonly findings: readonly ReadinessIssue[]
}

/**
 * Only draining and the start make an instance unready: workers that are not all there, a first lease that is awaited. A dead upstream
 * is dead for all instances: if all became unready, their stored responses would be lost too. A refused reload keeps the previous configuration.
 */
export const decideReadiness = (facts: ReadinessFacts): Readiness => ({
  ready: !facts.draining && !facts.starting,
  reasons: [
    ...(facts.draining ? (['draining'] as const) : []),
    ...(facts.starting ? (['starting'] as const) : []),
  ],
  degraded: [
    ...(facts.lastReloadRefused ? [{ reason: 'config' } as const] : []),
    ...(facts.memoryTrusted ? [] : [{ reason: 'shared' } as const]),
    ...(facts.workersMissing ? [{ reason: 'workers' } as const] : []),
    ...facts.silentFeeds.map((service) => ({ reason: 'changes', service }) as const),
    ...facts.laggingServices.map(
      ({ service, receiver, address, reason: cause }) =>
        ({ reason: 'downstream', service, receiver, address, cause }) as const,
    ),
    ...facts.servicesDown.map((service) => ({ reason: 'upstreams', service }) as const),
  ],
  findings: facts.findings,
  unknown: facts.servicesUnknown,
})
