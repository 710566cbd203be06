/** Conditions that clients may notice although the gateway is ready. */
export type Degradation =
  /** No target of the service accepts requests: only stored responses are served. */
  | { readonly reason: 'upstreams'; readonly service: string }
  /** The last reload was refused: the file differs from the configuration in use. */
  | { readonly reason: 'config' }
  /** Nothing is served from memory: notes of other writers do not arrive. */
  | { readonly reason: 'shared' }
  /** A worker has ended and its successor is not ready yet. */
  | { readonly reason: 'workers' }
  /** Not every change behind the gateway is known: stored responses of the service are used for the ordinary time only. */
  | { readonly reason: 'changes'; readonly service: string }

/** A warning about the configuration, or a mismatch between a service and its upstream; the log has the details. */
export type ReadinessFinding =
  | { readonly finding: 'config'; readonly setting: string }
  | { readonly finding: string; readonly service: string }

export type ReadinessFacts = {
  readonly draining: boolean
  readonly lastReloadRefused: boolean
  /** Services without a target that accepts requests. */
  readonly servicesDown: readonly string[]
  /** Not all workers have been ready once. */
  readonly starting: boolean
  readonly workersMissing: boolean
  /** May responses be served from memory? */
  readonly memoryTrusted: boolean
  /** Services whose change feed is not heard. */
  readonly feedsUnheard: readonly string[]
  readonly findings: readonly ReadinessFinding[]
}

/**
 * Whether to send requests here; `reasons`: why not; `degraded`: conditions that clients may notice; `findings`: what the check at the
 * start has found, without texts, since every client of the admin side may read this.
 */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly ('draining' | 'starting')[]
  readonly degraded: readonly Degradation[]
  readonly findings: readonly ReadinessFinding[]
}

/**
 * Only draining and workers that have not all started make an instance unready. A dead upstream is dead for all instances: if all
 * became unready, their stored responses would be lost too. A refused reload keeps the previous configuration.
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
    ...facts.feedsUnheard.map((service) => ({ reason: 'changes', service }) as const),
    ...facts.servicesDown.map((service) => ({ reason: 'upstreams', service }) as const),
  ],
  findings: facts.findings,
})
