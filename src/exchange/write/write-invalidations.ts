import type { Invalidation } from '../../cache/invalidation.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { KeyedWriteReceipt } from '../../service/contract.ts'
import type { Shown, WriteResponse } from '../../service/tagger.ts'
import type { ValidatedContext } from '../request-context.ts'
import type { Service } from '../service.ts'
import { givenNames } from './given-names.ts'
import { createdPath, targetTags } from './written-targets.ts'

/** The last three are Cloudflare's. A 503 is not one of them: most servers refuse a request with it, though some gateways time out with it. */
const statusesOfGivingUp: ReadonlySet<number> = new Set([502, 504, 520, 522, 524])

/**
 * A gateway at the upstream had not got the whole request, or takes its client for gone (460 is Amazon's, 499 nginx's): a part of it
 * may have been carried out.
 */
const statusesOfBreakingOff: ReadonlySet<number> = new Set([408, 460, 499])

/** The request was accepted, and is carried out later, or never (RFC 9110 §15.3.3). */
const statusOfAccepting = 202

/** A gateway at the upstream gave up: as without a response, the program behind it may still carry the write out. */
const saysNothing = ({ status }: { readonly status: number }): boolean => statusesOfGivingUp.has(status)

const documentInvalidations = ({ name, documents }: Service, collection: string): readonly Invalidation[] =>
  documents === undefined ? [] : [{ kind: 'documents', service: name, collection }]

/** On what only callers are shown, each what is his own. */
const ownTags = (
  { contract: { tagger } }: Service,
  receipt: KeyedWriteReceipt | undefined,
): readonly string[] => (receipt?.kind === 'own' && tagger.callers !== undefined ? [tagger.callers] : [])

/** What a write through another service reaches: all that the service holds, or the groups that the response names (RFC 9875 §3). */
const tagsOfSharing = (
  service: Service,
  written: WriteResponse | undefined,
  receipt: KeyedWriteReceipt | undefined,
): readonly string[] => {
  const { tagger } = service.contract
  const isReported = receipt !== undefined && isCoveredByFeed(service, receipt)
  const isRead = isReported || tagger.everything === undefined
  return [
    ...tagger.writtenTags(
      undefined,
      () => undefined,
      'POST',
      isRead ? written : undefined,
      undefined,
      isReported,
    ),
    ...ownTags(service, receipt),
  ]
}

/** The response as far as it shows what was written; undefined: the outcome is unknown. */
const writtenBy = (
  context: ValidatedContext,
  response: GatewayResponse | undefined,
  receipt: KeyedWriteReceipt | undefined,
): WriteResponse | undefined => {
  // A request that was sent before may have been carried out then; 404 is the response to a second DELETE.
  const isUnsure = response?.isRepeated === true || receipt?.kind === 'rows'
  if (response === undefined || statusesOfBreakingOff.has(response.status)) return undefined
  if (isUnsure && response.status >= 400) return undefined
  // What is carried out later is not shown yet.
  const isDone = response.status !== statusOfAccepting
  const content = isDone && Buffer.isBuffer(response.content) ? response.content : undefined
  return { ...response, content, created: createdPath(context, response) }
}

/** The tags of the own service, and of targets in all. */
const ownWriteTags = (
  context: ValidatedContext,
  written: WriteResponse | undefined,
  shown: Shown,
  receipt: KeyedWriteReceipt | undefined,
): readonly string[] => {
  const { service, method, matching, query, content, request, policy } = context
  const match = matching.kind === 'found' ? matching : undefined
  const argumentNames = (): readonly string[] | undefined =>
    givenNames(query, requestHeader(request.headers, 'content-type'), content)
  const isReported = receipt !== undefined && isCoveredByFeed(service, receipt)
  const isNothing = receipt?.kind === 'nothing' && policy.profile !== 'rfc-shared-cache'
  return [
    ...service.contract.tagger.writtenTags(match, argumentNames, method, written, shown, isReported),
    ...ownTags(service, receipt),
    // No cache need keep a target whose state nobody knows (RFC 9111 §4.4).
    ...(isNothing ? [] : targetTags(context, written && saysNothing(written) ? undefined : written)),
  ]
}

/** What a write may have changed; without a response its outcome is unknown. */
export const writeInvalidations = (
  context: ValidatedContext,
  response: GatewayResponse | undefined,
  /** Contents that show the state right before the write. */
  shown: Shown = () => [],
  receipt?: KeyedWriteReceipt,
): readonly Invalidation[] => {
  const { service, snapshot, matching } = context
  const written = writtenBy(context, response, receipt)
  const tags = ownWriteTags(context, written, shown, receipt)
  const forMs = service.limits.upstreamMs
  const isUnknown = written === undefined || saysNothing(written) || written.status === statusOfAccepting
  const isOver = receipt !== undefined || !isUnknown
  const invalidation = (tag: string): Invalidation =>
    isOver ? { kind: 'tag', tag, mode: 'hard' } : { kind: 'quarantine', tag, forMs }
  const documents = (of: Service, collection: string): readonly Invalidation[] =>
    receipt === undefined || receipt.kind === 'rows' ? documentInvalidations(of, collection) : []
  const isRefused =
    tags.length === 0 && written !== undefined && written.status >= 400 && written.status < 500
  const others = isRefused ? [] : snapshot.sharing(service)
  return [
    ...tags.map(invalidation),
    ...documents(service, matching.kind === 'found' ? matching.row.collection : ''),
    ...others.flatMap((other) => [
      ...tagsOfSharing(other, written, receipt).map(invalidation),
      ...documents(other, ''),
    ]),
  ]
}

export type Reaching = Pick<ValidatedContext, 'service' | 'snapshot'>

/** With all services of the same upstream, since a write through one of them changes what the others store. */
export const reachedBy = ({ service, snapshot }: Reaching): readonly Service[] => [
  service,
  ...snapshot.sharing(service),
]

/** What scheduled tasks may have changed. */
export const taskInvalidations = (reaching: Reaching): readonly Invalidation[] =>
  reachedBy(reaching).flatMap((service) => [
    ...tagsOfSharing(service, undefined, undefined).map(
      (tag): Invalidation => ({ kind: 'tag', tag, mode: 'hard' }),
    ),
    ...documentInvalidations(service, ''),
  ])

/** Do all changes of the request that a service may show have been dropped, or is there none? */
export const isCoveredByFeed = ({ writeReceipts }: Service, receipt: KeyedWriteReceipt): boolean =>
  receipt.kind !== 'rows' || (writeReceipts?.key === receipt.key && writeReceipts.hasApplied(receipt.rows))
