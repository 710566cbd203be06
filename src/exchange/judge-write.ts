import { Readable } from 'node:stream'
import type { ByteBudget } from '../http/bounds.ts'
import { requestField } from '../http/message.ts'
import type { HarmlessClaim, Question, Said, Witness } from '../service/witness.ts'
import type { Ready } from './exchange.ts'
import { readContent } from './request.ts'
import type { Service } from './service.ts'

/** The witness of a service, or of those that share its upstream; undefined when they have several. */
const witnessOf = (service: Service): Witness | undefined => {
  if (service.witness !== undefined) return service.witness
  const [first, ...others] = service.sharing().flatMap(({ witness }) => witness ?? [])
  return others.every(({ key }) => key === first?.key) ? first : undefined
}

/** Do all changes of the request that a service may show have been dropped, or is there none? */
export const isTold = ({ witness }: Service, said: Said): boolean =>
  said.kind !== 'rows' || (witness?.key === said.key && witness.hasApplied(said.rows))

/** For a request that counts as a write. Items of a batch may share one upstream request. */
export const questionFor = ({ service, origin }: Ready): Question | undefined =>
  origin === 'batch' ? undefined : witnessOf(service)?.ask()

/** The exchange with its content read, where it was; and what says that it changes nothing. */
type Judged = { readonly exchange: Ready; readonly claim: HarmlessClaim | undefined }

/** Without parameters; one that several parsers could read differently has no rule. */
const mediaTypeOf = (type: string): string => /^([\w/+-]+)\s*(?:;|$)/.exec(type)?.[1]?.toLowerCase() ?? ''

/** What is sent in a content coding may be something else for the server. */
const isCoded = ({ request: { fields } }: Ready): boolean => fields['content-encoding'] !== undefined

/**
 * A content that is not read whole may say anything: it is a write. Where the companion is asked, it knows more than the table.
 */
export const judgeWrite = async (exchange: Ready, budget: ByteBudget): Promise<Judged> => {
  const { service, method, matching, query, content, request, client } = exchange
  const claim = service.harmlessWrite?.(method, matching.path, query)
  const isWrite: Judged = { exchange, claim: undefined }
  if (claim === undefined || (claim.by === 'table' && questionFor(exchange) !== undefined)) return isWrite
  if (content === undefined) return claim.by === 'table' ? isWrite : { exchange, claim }
  const rule = isCoded(exchange)
    ? undefined
    : claim.contentRule(mediaTypeOf(requestField(request.fields, 'content-type') ?? ''))
  if (rule === undefined) return isWrite
  if (rule === 'any') return { exchange, claim }
  const length = Number(requestField(request.fields, 'content-length') ?? Number.POSITIVE_INFINITY)
  if (!(length <= rule.mostBytes)) return isWrite
  const reservation = budget('request-body', client.address)
  try {
    const read =
      content instanceof Readable
        ? await readContent(content, rule.mostBytes, request.signal, reservation)
        : content
    return { exchange: { ...exchange, content: read }, claim: rule.isRight(read) ? claim : undefined }
  } finally {
    reservation.release()
  }
}
