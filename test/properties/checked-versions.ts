import type { HistoryLine } from '../histories/history-line.ts'
import { postIds } from './versioned-upstream.ts'

type Shown = { readonly id: number; readonly version: number; readonly caller: string }

/** The posts that a response shows: an item, a list, or a page that renders one. */
export const shownIn = (text: string): readonly Shown[] => {
  const body = JSON.parse(text) as Shown | readonly Shown[] | { readonly all: readonly Shown[] }
  if ('all' in body) return body.all
  return 'id' in body ? [body] : body
}

/** A response to a read, and who gave it. */
export type CheckedResponse = { readonly text: string; readonly status: string; readonly by: string }

/** What a read that begins at a moment has to show at least. */
export type Expected = { readonly at: number; readonly versions: ReadonlyMap<number, number> }

/** `history` gets a line for each write, and for each post that a read shows. */
type CheckedVersionsOptions = {
  readonly onStale?: ((read: string) => void) | undefined
  readonly history?: ((line: HistoryLine) => void) | undefined
}

/** Which versions no read may fall behind any more, and which reads did. */
export const createCheckedVersions = ({
  onStale = () => undefined,
  history = () => undefined,
}: CheckedVersionsOptions = {}) => {
  /** Raised when a gateway has answered what made them. */
  const floors = new Map<number, number>(postIds.map((id) => [id, 0]))
  /** The origin of a floor, reported with a read below it. */
  const reasons = new Map<number, string>()
  const staleReads: string[] = []
  const crossed: string[] = []
  return {
    staleReads,
    crossed,
    /** What a read that begins now has to show at least. */
    asOfNow: (): Expected => ({ at: performance.now(), versions: new Map(floors) }),
    /** A post has a new version, which is not acknowledged yet. */
    made: (id: number, version: number): void =>
      history({
        kind: 'write',
        who: 'upstream',
        key: `${id}`,
        version,
        from: performance.now(),
        to: undefined,
      }),
    raise: (id: number, version: number, why: string): void => {
      const now = performance.now()
      if (version > 0) history({ kind: 'write', who: why, key: `${id}`, version, from: now, to: now })
      if (version <= (floors.get(id) ?? 0)) return
      floors.set(id, version)
      reasons.set(id, `${why} at ${new Date().toISOString()}`)
    },
    check: ({ text, status, by }: CheckedResponse, caller: string, { at, versions }: Expected): void => {
      for (const shown of shownIn(text)) {
        const floor = versions.get(shown.id) ?? 0
        const { id, version } = shown
        history({ kind: 'read', who: by, key: `${id}`, version, from: at, to: performance.now() })
        const told = `${status} by ${by} at ${new Date().toISOString()}`
        if (shown.version < floor) {
          const read = `post ${shown.id}: ${shown.version} < ${floor} (${reasons.get(shown.id)}), ${told}`
          staleReads.push(read)
          onStale(read)
        }
        if (shown.caller !== caller)
          crossed.push(`post ${shown.id} of ${shown.caller} for ${caller}, ${told}`)
      }
    },
  }
}

export type CheckedVersions = ReturnType<typeof createCheckedVersions>
