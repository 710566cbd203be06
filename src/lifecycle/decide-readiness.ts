/** What a client may notice although the gateway is ready. */
export type Degradation =
  /** No target of the service takes requests: stored answers go on, everything else fails. */
  | { readonly reason: 'upstreams'; readonly service: string }
  /** The last reload was refused: the file and what is in force differ. */
  | { readonly reason: 'config' }

export type ReadinessFacts = {
  readonly draining: boolean
  readonly lastReloadRefused: boolean
  /** Services of which no target takes requests. */
  readonly servicesDown: readonly string[]
}

/** May requests be sent here: `reasons` say why not, `degraded` what is not as it should be. */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly 'draining'[]
  readonly degraded: readonly Degradation[]
}

/**
 * Only draining takes an instance out. A dead upstream is dead for all instances alike: were they all taken out because of it,
 * stored answers could not be had either. A refused reload leaves what was right before in force.
 */
export const decideReadiness = (facts: ReadinessFacts): Readiness => ({
  ready: !facts.draining,
  reasons: facts.draining ? ['draining'] : [],
  degraded: [
    ...(facts.lastReloadRefused ? [{ reason: 'config' } as const] : []),
    ...facts.servicesDown.map((service) => ({ reason: 'upstreams', service }) as const),
  ],
})
