import { pipeline, Readable } from 'node:stream'
import type { InvalidateAgain, PostResponse } from '../cache/cache.ts'
import { decideCaching } from '../cache/decide-caching.ts'
import type { Note } from '../cache/invalidation.ts'
import { GatewayError } from '../errors.ts'
import { type ByteBudget, unlimited } from '../http/bounds.ts'
import {
  type Answer,
  discard,
  EndSignal,
  fieldValue,
  fieldValues,
  type GatewayResponse,
  isEventStream,
  requestField,
  teeContent,
} from '../http/message.ts'
import { isGetOrHead, isPost } from '../http/methods.ts'
import type { HarmlessClaim, Question, Witness, WitnessedStatement } from '../service/contract.ts'
import { readContent } from './admit.ts'
import type { WriteKind } from './events.ts'
import type { Outgoing, Ready } from './exchange.ts'
import { codingsToPass, ownConditions, passedOn, tagConditions, uncoded } from './forward.ts'
import {
  completed,
  concurrentWritesOf,
  invalidateWrite,
  isTold,
  showsOwnTarget,
  type TrackedWrite,
  writeNotes,
} from './invalidate-write.ts'
import type { CacheContext } from './ports.ts'
import { ExchangeRead, publicPart } from './read.ts'

/** The witness of a service, or of those that share its upstream; undefined when they have several. */
const witnessOf = ({ service, generation }: Ready): Witness | undefined => {
  if (service.witness !== undefined) return service.witness
  const [first, ...others] = generation.sharing(service).flatMap(({ witness }) => witness ?? [])
  return others.every(({ key }) => key === first?.key) ? first : undefined
}

/** For a request that counts as a write. Items of a batch may share one upstream request. */
const questionFor = (exchange: Ready): Question | undefined =>
  exchange.origin === 'batch' ? undefined : witnessOf(exchange)?.ask()

/** The exchange with its content read, where it was; and what says that it changes nothing. */
type Judged = { readonly exchange: Ready; readonly claim: HarmlessClaim | undefined }

/** Without parameters; one that several parsers could read differently has no rule. */
const mediaTypeOf = (type: string): string => /^([\w/+-]+)\s*(?:;|$)/.exec(type)?.[1]?.toLowerCase() ?? ''

/** What is sent in a content coding may be something else for the server. */
const isCoded = ({ request: { fields } }: Ready): boolean => fields['content-encoding'] !== undefined

/** A content that is not read whole may say anything: it is a write. */
const judgeWrite = async (exchange: Ready, budget: ByteBudget): Promise<Judged> => {
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

type SendOutgoing = (outgoing: Outgoing) => Answer

/** Begins with all services of the same upstream, since a write through one of them changes what the others store. */
const track = ({ cache }: CacheContext, { service, generation }: Ready): TrackedWrite =>
  concurrentWritesOf(cache).begin([service.name, ...generation.sharing(service).map(({ name }) => name)])

/** RFC 9110 §9.3.3: the response to a POST may serve later reads; only the profile `rfc-shared-cache` uses that. */
const storableResponse = ({ cache, forwarding }: CacheContext, exchange: Ready): PostResponse | undefined => {
  const { method, policy, service } = exchange
  if (!isPost(method) || policy.profile !== 'rfc-shared-cache' || service.contract.hasRoutes) return undefined
  const { sensitive, identity } = exchange
  const asGet = { method: 'GET', fields: exchange.request.fields, hasContent: false, sensitive, identity }
  if (decideCaching(asGet, policy).kind !== 'read') return undefined
  return cache.postResponse(new ExchangeRead(exchange, publicPart, tagConditions, forwarding))
}

const mayBeStored = ({ service, generation }: Ready): boolean =>
  [service, ...generation.sharing(service)].some(({ responses }) => responses.mayBeStored)

/** Announces the write to the other processes that store responses of its upstream; gives the id of the announcement. */
const announce = async ({ announcer }: CacheContext, exchange: Ready): Promise<string | undefined> => {
  if (announcer === undefined) return undefined
  const begun = await announcer.begin(writeNotes(exchange, undefined), mayBeStored(exchange))
  // The connection to the shared store is tried again several times a second.
  if (begun.kind === 'refused')
    throw new GatewayError('shared_store_unreachable', { retryAfterSeconds: 1, unsent: true })
  return begun.write
}

/** Is the response streamed to the client? Otherwise it is read whole, because its content shows what the write has changed. */
const streamsResponse = ({ origin, method, service, matching, content }: Ready): boolean => {
  // An item of a batch has no connection.
  if (origin === 'batch' || isGetOrHead(method)) return false
  if (matching.kind === 'unlisted') return true
  const isUpload = content !== undefined && !Buffer.isBuffer(content)
  return !service.contract.readsWriteResponse(matching.row, isUpload)
}

/**
 * Forwards the write with its own signal: a client that disconnects does not end it, so that its outcome is known. Otherwise
 * clients could empty the cache by sending writes and disconnecting. A content that streams ends with its client all the same.
 */
const forward = async (
  { budget }: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
  isRead: boolean,
  question: Question | undefined,
): Promise<GatewayResponse> => {
  const conditions = ownConditions(exchange.request.fields)
  const response = await send({
    exchange,
    effect: 'write',
    extraFields: question === undefined ? conditions : { ...conditions, 'trellis-nonce': question.field },
    withheld: tagConditions,
    acceptEncoding: isRead ? uncoded : codingsToPass(exchange),
    background: false,
    signal: new EndSignal(),
  })
  return streamsResponse(exchange) || (exchange.origin !== 'batch' && isEventStream(response))
    ? response
    : completed(response, exchange.service.limits.bodyBytes, budget('write-answer', exchange.client.address))
}

/** The upstream did not get the whole request, so it did not carry it out. */
const wasIncomplete = (error: unknown): boolean =>
  error instanceof GatewayError && (error.unsent || error.incomplete)

/** What the companion states about the write; of one that was sent twice it says too little. */
const statementIn = (
  { hints, isRepeated }: GatewayResponse,
  question: Question | undefined,
): WitnessedStatement | undefined => {
  const statement = isRepeated === true ? undefined : question?.read(hints?.statement)
  return statement === undefined || question === undefined ? undefined : { ...statement, key: question.key }
}

const kindOf = ({ service, generation }: Ready, statement: WitnessedStatement | undefined): WriteKind => {
  if (statement === undefined) return 'unknown'
  if (statement.kind !== 'rows') return 'nothing'
  return [service, ...generation.sharing(service)].some((service) => isTold(service, statement))
    ? 'reported'
    : 'unknown'
}

/** Does the answer show that the write was one that changes nothing, or need it not? */
const isShownBy = (claim: HarmlessClaim | undefined, response: GatewayResponse): boolean =>
  claim !== undefined &&
  response.isRepeated !== true &&
  claim.shownBy?.(response.status, fieldValues(response.fields, 'set-cookie')) !== false

/**
 * WordPress runs its tasks behind the response, without a statement. While the log of its changes is read, what they write is in it, as
 * when WordPress starts them past the gateway. A POST to another script that only names them may have done anything.
 */
const isLeftToLog = (exchange: Ready, { status }: GatewayResponse): boolean => {
  const { service, method, matching, sensitive } = exchange
  const isCron =
    sensitive === 'cron' &&
    (isGetOrHead(method) || service.contract.sensitivityOf(matching.path, '') === 'cron')
  return isCron && status < 500 && questionFor(exchange) !== undefined
}

/** Of a write without a statement that drops nothing by itself; undefined for all others. The companion knows more than the table. */
const knownKind = (
  exchange: Ready,
  claim: HarmlessClaim | undefined,
  response: GatewayResponse,
  statement: WitnessedStatement | undefined,
): WriteKind | undefined => {
  if (statement !== undefined) return undefined
  if (isShownBy(claim, response)) return 'table'
  return isLeftToLog(exchange, response) ? 'reported' : undefined
}

type Write = { readonly tracked: TrackedWrite; readonly announced: string | undefined }

/**
 * Invalidates what the write may have changed: in this process at once, in others when the promise resolves. `isOver`: it changes
 * nothing more.
 */
const invalidate = (
  { cache, announcer }: CacheContext,
  exchange: Ready,
  { tracked, announced }: Write,
  notes: readonly Note[],
  isOver: boolean,
): Promise<unknown> | undefined => {
  if (isOver) tracked.end()
  invalidateWrite(cache, exchange, notes)
  return announcer?.spread(notes, isOver ? announced : undefined)
}

/** Ends a write that failed: what it may have changed is invalidated, unless the upstream cannot have carried it out. */
const abandon = async (
  context: CacheContext,
  exchange: Ready,
  write: Write,
  error: unknown,
  claim: HarmlessClaim | undefined,
): Promise<void> => {
  const isHarmless = claim !== undefined && claim.shownBy === undefined
  if (!isHarmless && !wasIncomplete(error))
    await invalidate(context, exchange, write, writeNotes(exchange, undefined), true)
  else if (write.announced !== undefined) {
    write.tracked.end()
    await context.announcer?.spread([], write.announced)
  }
}

/**
 * The response, of which `invalidateAgain` is awaited before the client gets the end: a program may change more while it sends its
 * response. The content is stored for later reads where it may be.
 */
const endingWrite = (
  response: GatewayResponse,
  storable: PostResponse | undefined,
  invalidateAgain: InvalidateAgain,
): GatewayResponse => {
  const { content } = response
  const store = storable?.begin(response)
  if (content === undefined || Buffer.isBuffer(content)) {
    void store?.(content ?? Buffer.alloc(0), () => undefined)
    return response
  }
  const declared = fieldValue(response.fields, 'content-length')
  const tee = teeContent(
    storable?.maxBytes ?? 0,
    declared === undefined ? undefined : Number(declared),
    storable?.reservation ?? unlimited,
    (whole) =>
      whole === undefined || store === undefined ? invalidateAgain() : store(whole, invalidateAgain),
  )
  // An error on either side ends both; the reader of `tee` sees it.
  pipeline(content, tee, () => {})
  return { ...response, content: tee }
}

/**
 * Announces a write, forwards it, invalidates what it may have changed, here and wherever else it is stored, and only then
 * acknowledges it: a read that begins after the response gets nothing older.
 */
export const forwardWrite = async (
  context: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
  claim?: HarmlessClaim,
): Promise<GatewayResponse> => {
  exchange.record.writeKind = 'unknown'
  const tracked = track(context, exchange)
  const streams = streamsResponse(exchange)
  const storable = storableResponse(context, exchange)
  let response: GatewayResponse | undefined
  try {
    const write = { tracked, announced: await announce(context, exchange) }
    const question = questionFor(exchange)
    try {
      response = await forward(context, exchange, send, !streams || storable !== undefined, question)
    } catch (error) {
      await abandon(context, exchange, write, error, claim)
      throw error
    }
    const isStored =
      storable !== undefined && showsOwnTarget(exchange, response) && storable.isStorable(response)
    const isOver = !(response.content instanceof Readable)
    const statement = statementIn(response, question)
    const known = knownKind(exchange, claim, response, statement)
    exchange.record.writeKind = known ?? kindOf(exchange, statement)
    const notes =
      known !== undefined
        ? []
        : writeNotes(
            exchange,
            // A content that has not been read for it does not count: the row and the path decide.
            streams || !isOver ? { ...response, content: undefined } : response,
            tracked.isAlone() ? context.cache.contentsWithTag : undefined,
            statement,
          )
    const spread = invalidate(context, exchange, write, notes, isOver)
    // Before the wait, so that invalidations by other writes during it count.
    const answer = endingWrite(response, isStored ? storable : undefined, () =>
      invalidate(context, exchange, write, notes, true),
    )
    await spread
    return answer
  } catch (error) {
    discard(response?.content)
    tracked.end()
    throw error
  }
}

/** Forwards a write and drops what it may have changed; one of which it is known that it changes nothing drops nothing. */
export const write = async (
  context: CacheContext,
  exchange: Ready,
  send: SendOutgoing,
): Promise<GatewayResponse> => {
  const { service, method, request } = exchange
  // Of a POST that names another method, the upstream decides which one it has.
  if (service.contract.harmlessWrite === undefined || method !== request.method)
    return forwardWrite(context, exchange, send)
  const judged = await judgeWrite(exchange, context.budget)
  const { claim } = judged
  const isAsked = claim?.by === 'table' && questionFor(exchange) !== undefined
  if (claim === undefined || claim.shownBy !== undefined || isAsked)
    return forwardWrite(context, judged.exchange, send, claim)
  exchange.record.writeKind = claim.by
  return send(passedOn(judged.exchange))
}
