import { Readable } from 'node:stream'
import type { ByteBudget } from '../../http/bounds/byte-budget.ts'
import { headerValues, requestHeader } from '../../http/headers/header-lines.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { NoChangeClaim } from '../../service/contract.ts'
import { readContent } from '../admit/request-content.ts'
import type { ValidatedContext } from '../request-context.ts'

/** The request with its content, where it was read; and what says that it changes nothing. */
type Judged = { readonly requestContext: ValidatedContext; readonly claim: NoChangeClaim | undefined }

/** Without parameters; one that several parsers could read differently has no rule. */
const mediaTypeOf = (type: string): string => /^([\w/+-]+)\s*(?:;|$)/.exec(type)?.[1]?.toLowerCase() ?? ''

/** What is sent in a content coding may be something else for the server. */
const isCoded = ({ request: { headers } }: ValidatedContext): boolean =>
  headers['content-encoding'] !== undefined

/** A content that is not read whole may say anything: it is a write. */
export const judgeWrite = async (context: ValidatedContext, budget: ByteBudget): Promise<Judged> => {
  const { service, snapshot, method, matching, query, content, request, client } = context
  const claim = service.contract.noChangeClaim?.(method, matching.path, query, () =>
    snapshot
      .sharing(service)
      .flatMap(({ contract, address }) => (contract.hasRoutes ? [address.basePath] : [])),
  )
  const isWrite: Judged = { requestContext: context, claim: undefined }
  if (claim === undefined) return isWrite
  if (content === undefined) return claim.by === 'table' ? isWrite : { requestContext: context, claim }
  const rule = isCoded(context)
    ? undefined
    : claim.contentRule(mediaTypeOf(requestHeader(request.headers, 'content-type') ?? ''))
  if (rule === undefined) return isWrite
  if (rule === 'any') return { requestContext: context, claim }
  const length = Number(requestHeader(request.headers, 'content-length') ?? Number.POSITIVE_INFINITY)
  if (!(length <= rule.maxBytes)) return isWrite
  const reservation = budget('request-body', client.address)
  try {
    const read =
      content instanceof Readable
        ? await readContent(content, rule.maxBytes, request.signal, reservation)
        : content
    return { requestContext: { ...context, content: read }, claim: rule.isRight(read) ? claim : undefined }
  } finally {
    reservation.release()
  }
}

/** Does the response show that the write was one that changes nothing, or need it not? */
export const isConfirmed = (claim: NoChangeClaim | undefined, response: GatewayResponse): boolean =>
  claim !== undefined &&
  response.isRepeated !== true &&
  claim.confirmedBy?.(response.status, headerValues(response.headers, 'set-cookie')) !== false
