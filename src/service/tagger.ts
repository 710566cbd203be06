import type { Shown, TaggedArguments, TaggedResponse, WriteResponse } from '../cache/tagger.ts'
import type { Found } from './row.ts'

/** Names of the arguments that a write sets; undefined if not all of them are known. */
type Given = () => readonly string[] | undefined

/** Decides which tags a stored response has and which tags a write invalidates. Pure; throws for no input. */
export type Tagger = {
  /** `found` is undefined for a path without a row. */
  storedTags(found: Found | undefined, args: TaggedArguments, response: TaggedResponse): readonly string[]
  /** Added to responses that are stored for one credential; undefined if no write changes the rights of a caller. */
  readonly callers: string | undefined
  /**
   * Added to responses to requests with undeclared parameters: a plugin may show anything in them, so every write invalidates them.
   * Undefined if every write invalidates every response.
   */
  readonly undeclared: string | undefined
  /** Is it a response that the row can give? Otherwise it is not stored for other clients. */
  isReadable(response: TaggedResponse): boolean
  /**
   * `response` is undefined if the outcome is unknown; then everything that may have changed counts as changed. `shown`: stored
   * contents with a tag, which show the data right before the write; undefined if that is unknown. `isReported`: what the
   * companion has reported of this write is dropped already, or it has written nothing.
   */
  writtenTags(
    found: Found | undefined,
    given: Given,
    method: string,
    response: WriteResponse | undefined,
    shown?: Shown,
    isReported?: boolean,
  ): readonly string[]
  /** On every stored response; undefined where only targets and tags of the upstream distinguish responses. */
  readonly everything: string | undefined
  /** Tags that changes behind the gateway reach; undefined when they may reach every response of the service. */
  changedTags(changes: readonly Change[]): readonly string[] | undefined
}

/** The tags of a response to such a request: `own`, those of its row, and those that its partition and its parameters add. */
export const requestTags = (
  { callers, undeclared }: Pick<Tagger, 'callers' | 'undeclared'>,
  own: readonly string[],
  isPublic: boolean,
  sendsUndeclared: boolean,
): readonly string[] => {
  if (isPublic && !sendsUndeclared) return own
  const more = [isPublic ? undefined : callers, sendsUndeclared ? undeclared : undefined]
  return [...new Set([...own, ...more.filter((tag) => tag !== undefined)])]
}

/** Members of an object before or after a change, as the upstream names them; a missing member is unknown. */
export type ChangedState = Readonly<Record<string, unknown>>

/** One state of an object: null = there was none, undefined = not known. */
export type MaybeState = ChangedState | null | undefined

/** An object before and after a change. */
export type ChangedStates = { readonly before: MaybeState; readonly after: MaybeState }

/** A change of a site that its companion reports; `blog` in a network, where it is not the first one. */
export type Change = { readonly blog?: number } & (
  | ({ readonly kind: 'post'; readonly id: number; readonly type: string } & ChangedStates)
  | ({ readonly kind: 'term'; readonly id: number; readonly taxonomy: string } & ChangedStates)
  | ({ readonly kind: 'comment'; readonly id: number; readonly post: number } & ChangedStates)
  | { readonly kind: 'user'; readonly id: number }
  /** With `posts` the option is a list of posts, and these were added or removed. */
  | { readonly kind: 'option'; readonly name: string; readonly posts?: readonly number[] }
  /** A statement without an event. With `rows` no other rows are concerned than those with one of these ids, `column:value`. */
  | { readonly kind: 'table'; readonly name: string; readonly rows?: readonly string[] }
  | { readonly kind: 'all'; readonly reason: string }
)
