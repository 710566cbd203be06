/** What a client may notice although the gateway is ready. */
export type Degradation =
  /** No target of the service takes requests: stored answers go on, everything else fails. */
  | { readonly reason: 'upstreams'; readonly service: string }
  /** The last reload was refused: the file and what is in force differ. */
  | { readonly reason: 'config' }
  /** Nothing is answered from memory: whoever else writes cannot be heard. */
  | { readonly reason: 'shared' }
  /** A worker has ended and its successor is not ready yet. */
  | { readonly reason: 'workers' }

export type ReadinessFacts = {
  readonly draining: boolean
  readonly lastReloadRefused: boolean
  /** Services of which no target takes requests. */
  readonly servicesDown: readonly string[]
  /** Not all workers have been ready once. */
  readonly starting: boolean
  readonly workersMissing: boolean
  /** May answers be given from memory? */
  readonly memoryTrusted: boolean
}

/** May requests be sent here: `reasons` say why not, `degraded` what is not as it should be. */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly ('draining' | 'starting')[]
  readonly degraded: readonly Degradation[]
}

/**
 * Only draining takes an instance out, and workers that have not all started. A dead upstream is dead for all instances alike: were they all taken out because of it,
 * stored answers could not be had either. A refused reload leaves what was right before in force.
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
    ...facts.servicesDown.map((service) => ({ reason: 'upstreams', service }) as const),
  ],
})
