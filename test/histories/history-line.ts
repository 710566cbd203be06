/** A read or a write as its client saw it. */
export type HistoryLine = {
  readonly kind: 'read' | 'write'
  /** Who read or wrote; spaces become hyphens. */
  readonly who: string
  /** What was read or written; the same name in two runs is not the same thing. */
  readonly key: string
  readonly version: number
  /** Milliseconds. */
  readonly from: number
  /** Undefined: a write that is not acknowledged. */
  readonly to: number | undefined
}

/** The line as check-history.go reads it. */
export const historyLine = ({ kind, who, key, version, from, to }: HistoryLine): string =>
  `${kind} ${who.replaceAll(' ', '-')} ${key} ${version} ${from} ${to ?? '-'}\n`
