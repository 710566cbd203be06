import { Readable } from 'node:stream'
import { cacheKey } from '../../cache/cache-key.ts'
import { keepsContent } from '../../cache/decide-caching.ts'
import { GatewayError } from '../../errors.ts'
import { overheadOfChunk, type Reservation } from '../../http/bounds/byte-budget.ts'
import { addressGroup } from '../../http/bounds/client-network.ts'
import { requestHeader } from '../../http/headers/header-lines.ts'
import { whenKnown } from '../../http/message.ts'
import { isGet } from '../../http/methods.ts'
import { contentText } from '../../http/response-text.ts'
import { canonicalInTurns, type canonicalOf } from '../../service/canonical.ts'
import type { ContentPlan } from '../../service/contract.ts'
import type { Found } from '../../service/row.ts'
import type { RefusedTarget, ValidTarget } from '../../service/target-memo.ts'
import { isRefusedByTargetAlone, refusalResponse } from '../error-response.ts'
import type { ExchangeEvent } from '../events.ts'
import { asRecalled, asValidated, type MatchedContext, type ValidatedContext } from '../request-context.ts'
import { readContent, tooManyBodies } from './request-content.ts'

/** A declared length over the limit is refused before a byte is read; other content is counted while it is read. */
const refuseTooMuch = ({ request, service }: MatchedContext, plan: ContentPlan): void => {
  const declared = Number(requestHeader(request.headers, 'content-length') ?? 0)
  const max = plan === 'read' ? service.limits.bodyBytes : service.limits.uploadBytes
  if (declared > max) throw new GatewayError('content_too_large', { detail: `At most ${max} bytes.` })
}

const streamOf = (content: Buffer): Readable =>
  new Readable({
    read() {
      this.push(content)
      this.push(null)
    },
  })

/** The content: read whole where the row checks it, otherwise a stream. Throws 413 and 415. */
const contentOf = (
  context: MatchedContext,
  reservation: Reservation,
): ValidatedContext['content'] | Promise<Buffer> => {
  const { matching, request, method, service } = context
  const { content, headers, signal } = request
  if (content === undefined) return undefined
  const { contract } = service
  const byContract =
    matching.kind === 'found' ? contract.contentPlan(method, matching.endpoint, headers) : 'stream'
  const plan = keepsContent(method, contract.policyFor(method, matching.path)) ? 'read' : byContract
  refuseTooMuch(context, plan)
  // The content of an item is counted with its batch.
  if (Buffer.isBuffer(content) && context.origin === 'client') {
    if (!reservation.reserve(content.length + overheadOfChunk)) throw tooManyBodies()
    return plan === 'stream' ? streamOf(content) : content
  }
  return plan === 'stream' ? content : readContent(content, service.limits.bodyBytes, signal, reservation)
}

/** The response to a request that its contract refuses; `code` is for metrics and the log. */
export type ContractRefusal = Pick<RefusedTarget, 'kind' | 'code' | 'response'>

/** Longer ones repeat long lists of allowed values, and a flood of refused targets could fill the memory. */
const longestRefusal = 1024

const rememberRefusal = ({ service, request }: MatchedContext, refused: RefusedTarget): void => {
  const { content } = refused.response
  if (Buffer.isBuffer(content) && content.length <= longestRefusal) {
    const text = contentText(content)
    service.memo.remember(request.target, { ...refused, response: { ...refused.response, text } })
  }
}

const remember = (validated: ValidatedContext, matching: Found): void => {
  const { service, target, query, uncacheable, policy, request } = validated
  const publicKey = cacheKey({ service: service.name, target, partition: 'public' })
  const recalled: ValidTarget = {
    kind: 'valid',
    matching,
    target,
    query,
    arguments: validated.arguments,
    sendsUndeclared: validated.sendsUndeclared,
    uncacheable,
    variant: undefined,
    policy,
    publicKey,
  }
  service.memo.remember(request.target, recalled)
  // One text for the key, here and where it is stored: another one would be hashed again.
  asRecalled(validated, recalled)
}

const canonicalised = (
  context: MatchedContext,
  content: Buffer | Readable | undefined,
  report: (event: ExchangeEvent) => void,
): ValidatedContext | ContractRefusal | Promise<ValidatedContext | ContractRefusal> => {
  const { service, matching, method, query, request, checked: itemCheck, client } = context
  const { headers } = request
  const canonical =
    itemCheck?.matching === matching
      ? itemCheck.canonical
      : canonicalInTurns(
          service.contract,
          method,
          matching,
          {
            query,
            headers,
            contentType: requestHeader(headers, 'content-type'),
            content: Buffer.isBuffer(content) ? content : undefined,
            isUnread: content instanceof Readable,
          },
          addressGroup(client.address),
        )
  return whenKnown(canonical, (known) => validatedFrom(context, known, content, report))
}

const validatedFrom = (
  context: MatchedContext,
  canonical: ReturnType<typeof canonicalOf>,
  content: Buffer | Readable | undefined,
  report: (event: ExchangeEvent) => void,
): ValidatedContext | ContractRefusal => {
  const { service, matching, query, request } = context
  const { headers } = request
  if (canonical.kind === 'invalid') {
    const { code, match } = canonical
    const response = refusalResponse({ service, row: match.row, query, headers }, canonical)
    // With several hosts a refusal may contain links to the host that was asked.
    if (
      service.address.host === '' &&
      match.endpoint.readsHeaders !== true &&
      isRefusedByTargetAlone(request)
    )
      rememberRefusal(context, { kind: 'refused', matching: match, code, response })
    return { kind: 'refused', code, response }
  }
  if (canonical.undeclared !== undefined) {
    const { handling, names } = canonical.undeclared
    report({ kind: 'undeclared-parameters', service: service.name, handling, count: names.length })
  }
  const validated = asValidated(context, canonical, content)
  if (canonical.meaning !== undefined) validated.record.route = canonical.meaning.operation
  // Only what follows from the target alone.
  const mayBeRecalled = isGet(request.method) && content === undefined && matching.kind === 'found'
  if (mayBeRecalled && matching.endpoint.readsHeaders !== true) {
    remember(validated, matching)
    if (request.target !== service.mount + validated.target)
      report({ kind: 'target-canonicalised', service: service.name })
  }
  return validated
}

/** Checks arguments and content against the row, and makes the one form of the request that is keyed and sent. */
export const validate = (
  context: MatchedContext,
  reservation: Reservation,
  report: (event: ExchangeEvent) => void,
): ValidatedContext | ContractRefusal | Promise<ValidatedContext | ContractRefusal> => {
  const { recalled, request } = context
  if (request.content !== undefined)
    return whenKnown(contentOf(context, reservation), (content) => canonicalised(context, content, report))
  if (recalled === undefined) return canonicalised(context, undefined, report)
  return recalled.kind === 'valid' ? asValidated(context, recalled, undefined) : recalled
}
