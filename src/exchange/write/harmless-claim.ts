import { Readable } from 'node:stream'
import type { ByteBudget } from '../../http/bounds.ts'
import { fieldValues, type GatewayResponse, requestField } from '../../http/message.ts'
import type { HarmlessClaim, Question, Witness } from '../../service/contract.ts'
import { readContent } from '../admit.ts'
import type { Ready } from '../exchange.ts'

/** The witness of a service, or of those that share its upstream; undefined when they have several. */
const witnessOf = ({ service, generation }: Ready): Witness | undefined => {
  if (service.witness !== undefined) return service.witness
  const [first, ...others] = generation.sharing(service).flatMap(({ witness }) => witness ?? [])
  return others.every(({ key }) => key === first?.key) ? first : undefined
}

/** For a request that counts as a write. Items of a batch may share one upstream request. */
export const questionFor = (exchange: Ready): Question | undefined =>
  exchange.origin === 'batch' ? undefined : witnessOf(exchange)?.ask()

/** The exchange with its content read, where it was; and what says that it changes nothing. */
type Judged = { readonly exchange: Ready; readonly claim: HarmlessClaim | undefined }

/** Without parameters; one that several parsers could read differently has no rule. */
const mediaTypeOf = (type: string): string => /^([\w/+-]+)\s*(?:;|$)/.exec(type)?.[1]?.toLowerCase() ?? ''

/** What is sent in a content coding may be something else for the server. */
const isCoded = ({ request: { fields } }: Ready): boolean => fields['content-encoding'] !== undefined

/** A content that is not read whole may say anything: it is a write. */
export const judgeWrite = async (exchange: Ready, budget: ByteBudget): Promise<Judged> => {
  const { service, generation, method, matching, query, content, request, client } = exchange
  const claim = service.contract.harmlessWrite?.(method, matching.path, query, () =>
    generation
      .sharing(service)
      .flatMap(({ contract, address }) => (contract.announces ? [address.basePath] : [])),
  )
  const isWrite: Judged = { exchange, claim: undefined }
  if (claim === undefined) return isWrite
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

/** Does the response show that the write was one that changes nothing, or need it not? */
export const isShownBy = (claim: HarmlessClaim | undefined, response: GatewayResponse): boolean =>
  claim !== undefined &&
  response.isRepeated !== true &&
  claim.shownBy?.(response.status, fieldValues(response.fields, 'set-cookie')) !== false
