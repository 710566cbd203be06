/** Why the upstream's index could not be used; the last good one stays. */
export const indexRefusals = [
  'unreachable',
  'timeout',
  'status',
  'too-large',
  'too-deep',
  'not-json',
  'not-an-index',
  /** It can be read, but processing it failed. */
  'unusable',
] as const
export type IndexRefusal = (typeof indexRefusals)[number]

/** Why no row was made of a route that the upstream announces. */
export const routeRefusals = [
  'pattern-too-long',
  'pattern-unreadable',
  'pattern-not-understood',
  'pattern-too-complex',
  'too-many-alike',
  'template-taken',
  'not-a-route',
  'no-methods',
  'too-many-arguments',
] as const
export type RouteRefusal = (typeof routeRefusals)[number]

/** How the upstream's index differs from the contract's table. */
export const differenceKinds = [
  'route-missing',
  'pattern-changed',
  'method-missing',
  'method-added',
  'batch-changed',
  'argument-missing',
  'argument-added',
  'argument-changed',
] as const
export type DifferenceKind = (typeof differenceKinds)[number]

/** Events of discovery. `service` comes from the configuration, all else from closed lists and counts. */
export type DiscoveryEvent =
  | {
      readonly kind: 'index-refreshed'
      readonly service: string
      /** Routes that the upstream announces and the contract does not list. */
      readonly unlistedRoutes: number
      readonly learnedRows: number
      readonly refused: Readonly<Partial<Record<RouteRefusal, number>>>
    }
  | {
      /** Sent when the announced routes of which no row could be made are others than before; they are passed on unread. */
      readonly kind: 'routes-refused'
      readonly service: string
      readonly refused: Readonly<Partial<Record<RouteRefusal, number>>>
    }
  | {
      readonly kind: 'index-failed'
      readonly service: string
      readonly reason: IndexRefusal
      /** Whether an earlier index still answers. */
      readonly keptLast: boolean
      /** The error, for the log only. */
      readonly cause?: unknown
    }
  | {
      /** Sent after the first refresh and whenever the differences change: the counts of those that matter, with zero left out. */
      readonly kind: 'drift-compared'
      readonly service: string
      readonly differences: Readonly<Partial<Record<DifferenceKind, number>>>
    }
