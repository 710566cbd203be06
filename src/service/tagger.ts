import { foldedTargetKey } from '../cache/cache-key.ts'
import type { Readability } from '../http/bodies/json-readability.ts'
import type { HeaderLines } from '../http/headers/header-lines.ts'
import type { ResponseHead } from '../http/message.ts'
import type { Found } from './row.ts'

/** The typed arguments of a request, from the validator. */
export type TaggedArguments = Readonly<Record<string, unknown>>

export type TaggedResponse = ResponseHead & {
  readonly content: Buffer
}

/** The response to a write; `content` is undefined if it was streamed. */
export type WriteResponse = {
  readonly status: number
  readonly headers: HeaderLines
  readonly content: Buffer | undefined
  /** Path below the service that Location names, in its canonical form, where tags depend on it. */
  readonly created?: string | undefined
}

/** Contents of stored responses with a tag; only some of them if there are many. */
export type Shown = (tag: string) => readonly Buffer[]

/** Names of the arguments that a write sets; undefined if not all of them are known. */
type ArgumentNames = () => readonly string[] | undefined

/** Decides which tags a stored response has and which tags a write invalidates. Pure; throws for no input. */
export type Tagger = {
  /** `match` is undefined for a path without a row. */
  storedTags(match: Found | undefined, args: TaggedArguments, response: TaggedResponse): readonly string[]
  /** Added to responses that are stored for one credential; undefined if no write changes the rights of a caller. */
  readonly callers: string | undefined
  /**
   * Gives what is added to the tags of responses to requests with undeclared parameters: a plugin may show anything in them, so every
   * write invalidates them, except where the companion says what they show. Undefined if every write invalidates every response.
   */
  readonly undeclared: ((rowTags: readonly string[]) => string) | undefined
  /** Is it a response that the row can give? Otherwise it is not for other clients. Without the content it may be `unknown`. */
  readability(head: ResponseHead, content: Buffer | undefined): Readability
  /**
   * `response` is undefined if the outcome is unknown; then everything that may have changed counts as changed. `shown`: stored
   * contents with a tag, which show the data right before the write; undefined if that is unknown. `isReported`: what the
   * companion has reported of this write is dropped already, or it has written nothing.
   */
  writtenTags(
    match: Found | undefined,
    argumentNames: ArgumentNames,
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

/** The parts of a request, besides its row, that add tags to its response. */
type TaggedRequest = {
  readonly service: string
  readonly target: string
  readonly isPublic: boolean
  readonly sendsUndeclared: boolean
}

/** The tags of a response to such a request: `rowTags`, those of its row, and those that its target, partition and parameters add. */
export const requestTags = (
  contract: { readonly tagger: Pick<Tagger, 'callers' | 'undeclared'>; readonly invalidatesTargets: boolean },
  rowTags: readonly string[],
  { service, target, isPublic, sendsUndeclared }: TaggedRequest,
): readonly string[] => {
  const { callers, undeclared } = contract.tagger
  const spellings = contract.invalidatesTargets ? foldedTargetKey(service, target) : undefined
  if (isPublic && !sendsUndeclared && spellings === undefined) return rowTags
  const more = [
    isPublic ? undefined : callers,
    sendsUndeclared ? undeclared?.(rowTags) : undefined,
    spellings,
  ]
  return [...new Set([...rowTags, ...more.filter((tag) => tag !== undefined)])]
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
  /** With `keys` only the user's meta with these keys, which a response shows only if it names them. */
  | { readonly kind: 'user'; readonly id: number; readonly keys?: readonly string[] }
  /** With `posts` the option is a list of posts, and these were added or removed. `early`: requests read it before they are known. */
  | {
      readonly kind: 'option'
      readonly name: string
      readonly posts?: readonly number[]
      readonly early?: boolean
    }
  /**
   * A receipt without an event. With `rows` no other rows are concerned than those with one of these ids, `column:value`. The rows that a
   * read `memoized` concern only responses that found none.
   */
  | {
      readonly kind: 'table'
      readonly name: string
      readonly rows?: readonly string[]
      readonly memoized?: readonly string[]
    }
  | { readonly kind: 'all'; readonly reason: string }
)
