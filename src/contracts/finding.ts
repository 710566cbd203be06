import type { Endpoint, Row } from './row.ts'

/** Why a path is refused before any row is looked for: each could mean one thing here and another at the upstream. */
export type PathRefusal =
  | 'ambiguous-identifier'
  | 'bad-encoding'
  | 'backslash'
  | 'control-character'
  | 'dot-segment'
  | 'encoded-slash'
  | 'not-absolute'
  | 'too-long'

/** What the route table says of a method and a path relative to the service's mount. */
export type RouteFinding =
  | {
      readonly kind: 'found'
      readonly row: Row
      readonly endpoint: Endpoint
      /** Named groups of the row's pattern, percent-decoded, e.g. `{ id: '5' }`. */
      readonly pathParameters: Readonly<Record<string, string>>
      /** The one spelling of this path: what is keyed and what is sent. */
      readonly path: string
    }
  | { readonly kind: 'options'; readonly row: Row; readonly path: string }
  | { readonly kind: 'wrong-method'; readonly row: Row; readonly path: string }
  /** No row has this path; `path` is cleaned as far as is safe without knowing its meaning. */
  | { readonly kind: 'unlisted'; readonly path: string }
  | { readonly kind: 'refused'; readonly reason: PathRefusal }

export type Found = Extract<RouteFinding, { kind: 'found' }>
