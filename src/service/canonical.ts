import type { CachePolicy, UncacheableReason } from '../cache/decide-caching.ts'
import { inTurns, nowOrInTurns, type Pieces } from '../http/bodies/turns.ts'
import type { RequestHeaders } from '../http/headers/header-lines.ts'
import { targetOf } from '../http/targets.ts'
import {
  type ContentMeaning,
  type Contract,
  type Invalid,
  piecesOf,
  type UndeclaredParameters,
  type Validation,
} from './contract.ts'
import type { Incoming, Matching } from './route-request.ts'
import type { Found } from './row.ts'

/** Headers and cookies that the route declares, without credentials. */
export type DeclaredHeaders = {
  /** In their one spelling. */
  readonly key: string
  /** Cookie header with the declared cookies alone: a response that is stored depends on no other. */
  readonly cookie: string | undefined
}

/** The one form of a request, which is keyed and sent. */
export type Canonical = {
  readonly kind: 'valid'
  /** Path and query, in public names, relative to the mount. */
  readonly target: string
  readonly query: string
  /** Typed values of the row's arguments; empty where no row applies. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** Parameters of the query that the row does not declare. */
  readonly undeclared: UndeclaredParameters | undefined
  /** They are sent, so it is unknown what the response depends on. */
  readonly sendsUndeclared: boolean
  readonly uncacheable: UncacheableReason | undefined
  /** Declared headers and cookies, which are part of the cache key; undefined where none are declared. */
  readonly variant: DeclaredHeaders | undefined
  /** From the rules for this route. */
  readonly policy: CachePolicy
  /** The content in its one spelling, for a request that is keyed; absent where it is sent as it is. */
  readonly keyedContent?: Buffer | undefined
  /** Absent where method and path alone say what the request does. */
  readonly meaning?: ContentMeaning | undefined
}

type RefusedArguments = Invalid & { readonly match: Found }

type Sent = Pick<Incoming, 'query'> & {
  /** Undefined: no argument is among them. */
  readonly headers: RequestHeaders | undefined
  /** Complete content; undefined when there is none or when it is streamed unread. */
  readonly content: Buffer | undefined
  readonly contentType: string | undefined
  /** There is content, which is streamed. */
  readonly isUnread?: boolean
}

/** A request without a row is not checked, and stays as it is. */
const uncheckedOf = (
  contract: Contract,
  method: string,
  { path }: Exclude<Matching, Found>,
  query: string,
): Canonical => ({
  kind: 'valid',
  target: targetOf(path, query),
  query,
  arguments: {},
  undeclared: undefined,
  sendsUndeclared: false,
  uncacheable: contract.uncacheableReasonOf(path, query),
  variant: undefined,
  policy: contract.policyFor(method, path),
})

const validationInput = (method: string, { row, endpoint, pathParameters }: Found, sent: Sent) => ({
  method,
  row,
  endpoint,
  pathParameters,
  ...sent,
})

/** Checks arguments and content against the row; in pieces for a long content. */
export function* canonicalInPieces(
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
): Pieces<Canonical | RefusedArguments> {
  if (matching.kind !== 'found') return uncheckedOf(contract, method, matching, sent.query)
  const input = validationInput(method, matching, sent)
  return validated(contract, method, matching, yield* piecesOf(contract.validator, input))
}

/** The same, for what has no content, or a short one. */
export const canonicalOf = (
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
): Canonical | RefusedArguments =>
  matching.kind === 'found'
    ? validated(
        contract,
        method,
        matching,
        contract.validator.validate(validationInput(method, matching, sent)),
      )
    : uncheckedOf(contract, method, matching, sent.query)

/** Most shorter contents are checked within a millisecond or two, in this turn. */
const shortContent = 16 * 1024

/**
 * The same for any content: what takes long is read and checked in several turns of the event loop, such as a content that is the first
 * one of its schema. `client`: the address that sent it.
 */
export const canonicalInTurns = (
  contract: Contract,
  method: string,
  matching: Matching,
  sent: Sent,
  client: string,
): Canonical | RefusedArguments | Promise<Canonical | RefusedArguments> => {
  if (matching.kind !== 'found' || sent.content === undefined)
    return canonicalOf(contract, method, matching, sent)
  const isShort = sent.content.length <= shortContent
  if (isShort && contract.validator.validateInPieces === undefined)
    return canonicalOf(contract, method, matching, sent)
  const work = canonicalInPieces(contract, method, matching, sent)
  return isShort ? nowOrInTurns(work, client) : inTurns(work, client)
}

/** Of requests whose content says what they mean: contracts give the same validation for the same content, as long as they remember it. */
const canonicalByValidation = new WeakMap<
  Validation,
  { readonly path: string; readonly canonical: Canonical }
>()

const validated = (
  contract: Contract,
  method: string,
  matching: Found,
  validation: Validation,
): Canonical | RefusedArguments => {
  if (validation.kind === 'invalid') return { ...validation, match: matching }
  const { path } = matching
  const memoized = validation.meaning === undefined ? undefined : canonicalByValidation.get(validation)
  if (memoized?.path === path) return memoized.canonical
  const canonical = canonicalOfValid(contract, method, matching, validation)
  if (validation.meaning !== undefined) canonicalByValidation.set(validation, { path, canonical })
  return canonical
}

const canonicalOfValid = (
  contract: Contract,
  method: string,
  matching: Found,
  validation: Exclude<Validation, Invalid>,
): Canonical => {
  const { undeclared, variant, cookie, meaning } = validation
  return {
    kind: 'valid',
    target: targetOf(matching.path, meaning?.keyedQuery ?? validation.query),
    query: validation.query,
    arguments: validation.arguments,
    undeclared,
    sendsUndeclared: undeclared?.handling === 'sent' || validation.mayShowAnything === true,
    uncacheable:
      validation.hasQueryCredential === true
        ? 'api-key'
        : contract.uncacheableReasonOf(matching.path, validation.query),
    variant: variant === undefined ? undefined : { key: variant, cookie },
    policy: meaning?.policy ?? contract.policyFor(method, matching.path),
    keyedContent: validation.keyedContent,
    meaning,
  }
}
