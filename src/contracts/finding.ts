import type { Endpoint, Row } from './row.ts'

/** Why a path is refused: the upstream might read it as another route than the gateway. */
export type PathRefusal =
  | 'ambiguous-identifier'
  | 'bad-encoding'
  | 'backslash'
  | 'control-character'
  | 'dot-segment'
  | 'encoded-slash'
  | 'not-absolute'
  | 'too-long'

/** The result of routing a method and a path relative to the service's mount. */
export type RouteFinding =
  | {
      readonly kind: 'found'
      readonly row: Row
      readonly endpoint: Endpoint
      /** Named groups of the row's pattern, percent-decoded, e.g. `{ id: '5' }`. */
      readonly pathParameters: Readonly<Record<string, string>>
      /** The canonical path: for the cache key and for the upstream. */
      readonly path: string
    }
  | { readonly kind: 'options'; readonly row: Row; readonly path: string }
  | { readonly kind: 'wrong-method'; readonly row: Row; readonly path: string }
  /** No row has this path; `path` is normalised as far as all routes agree on its meaning. */
  | { readonly kind: 'unlisted'; readonly path: string }
  | { readonly kind: 'refused'; readonly reason: PathRefusal }

export type Found = Extract<RouteFinding, { kind: 'found' }>
