import { Readable } from 'node:stream'
import { startsTasks } from '../cache/decide-caching.ts'
import type { PostResponse } from '../cache/post-response.ts'
import { bufferedResponse } from '../http/bodies/read-body.ts'
import { headerValue } from '../http/headers/header-lines.ts'
import { discard, type GatewayResponse, type ResponseOrPromise } from '../http/message.ts'
import type { NoChangeClaim, ReceiptNonce } from '../service/contract.ts'
import type { WriteStep } from './events.ts'
import { codingsToPass, uncoded } from './forward/accepted-codings.ts'
import type { Outgoing } from './forward/outgoing.ts'
import { ownConditions, tagConditions } from './forward/tag-conditions.ts'
import { passedOn } from './forward.ts'
import type { CacheDeps } from './ports.ts'
import type { ValidatedContext } from './request-context.ts'
import { judgeWrite } from './write/no-change-claim.ts'
import { storablePost, storageOfPost } from './write/post-storage.ts'
import { getsReceipt, nonceFor } from './write/receipt-nonce.ts'
import { bodyOf, expectedBody, type ResponseBody } from './write/response-body.ts'
import { mayHaveStarted, tasksStarted } from './write/scheduled-tasks.ts'
import { WriteInvalidator } from './write/write-invalidator.ts'
import {
  leavesTasks,
  startsTasksAlone,
  verdictOf,
  type WriteVerdict,
  writeKindOf,
} from './write/write-verdict.ts'

type ForwardOutgoing = (outgoing: Outgoing) => ResponseOrPromise

/** A write from the first look at it to its response: what its steps have found so far. */
class Write {
  readonly deps: CacheDeps
  readonly forwardOutgoing: ForwardOutgoing
  /** With its content, where `judge` has read it. */
  context: ValidatedContext
  /** From `register` on. */
  invalidator: WriteInvalidator | undefined = undefined
  /** What says that it changes nothing. */
  claim: NoChangeClaim | undefined = undefined
  /** It is for scheduled tasks alone. */
  isTasksAlone = false
  nonce: ReceiptNonce | undefined = undefined
  storablePost: PostResponse | undefined = undefined
  response: GatewayResponse | undefined = undefined
  body: ResponseBody = 'streamed'
  verdict: WriteVerdict | undefined = undefined
  /** As the client gets it. */
  reply: GatewayResponse | undefined = undefined
  /** Until these have settled, the client gets nothing of the response. */
  readonly awaited: (Promise<unknown> | undefined)[] = []

  constructor(deps: CacheDeps, context: ValidatedContext, forwardOutgoing: ForwardOutgoing) {
    this.deps = deps
    this.context = context
    this.forwardOutgoing = forwardOutgoing
  }
}

/** The steps of its response follow by calls of the stream. */
type RequestStep = Exclude<WriteStep, 'piece' | 'break-off'>
/** Undefined: the client gets the response. */
type Next = RequestStep | undefined

/** A step has run without the one that it depends on. */
const outOfOrder = (): TypeError => new TypeError('a step of a write is out of order')

/** Is it known that it changes nothing? The content may have to be read for that. */
const judge = async (write: Write): Promise<Next> => {
  const { context, deps } = write
  const { service, method, request, record } = context
  record.writeKind = 'unclassified'
  // Of a POST that names another method, the upstream decides which one it has.
  if (service.contract.noChangeClaim === undefined || method !== request.method) return 'register'
  const judged = await judgeWrite(context, deps.budget)
  const { claim } = judged
  write.context = judged.requestContext
  write.claim = claim
  // A receipt knows more than the table.
  const isOutdone = claim?.by === 'table' && getsReceipt(context)
  if (claim === undefined || claim.confirmedBy !== undefined || isOutdone) return 'register'
  record.writeKind = claim.by
  return 'pass'
}

/** It changes nothing, and neither its response nor a receipt has a say in that. */
const pass = async (write: Write): Promise<Next> => {
  write.reply = await write.forwardOutgoing(passedOn(write.context))
  return undefined
}

/** The ledger records what it may change, so that the other processes drop it if this one ends first. */
const register = async (write: Write): Promise<Next> => {
  const { context, claim, deps } = write
  write.isTasksAlone = startsTasksAlone(context)
  const neverDrops = write.isTasksAlone || (claim !== undefined && claim.confirmedBy === undefined)
  write.invalidator = new WriteInvalidator(deps, context, neverDrops)
  // It remembers when the POST was sent.
  write.storablePost = storablePost(deps, context)
  await write.invalidator.register()
  return 'forward'
}

/** With a nonce, so that the companion's receipt is known to be the one of this write. */
const forward = async (write: Write): Promise<Next> => {
  const { context, storablePost, invalidator } = write
  if (invalidator === undefined) throw outOfOrder()
  write.nonce = nonceFor(context)
  const { nonce } = write
  const conditions = ownConditions(context.request.headers)
  const expected = expectedBody(context)
  write.response = await write.forwardOutgoing({
    context,
    effect: 'write',
    extraHeaders: nonce === undefined ? conditions : { ...conditions, 'trellis-nonce': nonce.header },
    stripped: tagConditions,
    acceptEncoding: expected === 'whole' || storablePost !== undefined ? uncoded : codingsToPass(context),
    background: false,
    // A content that streams ends with its client, whatever the signal says.
    signal: invalidator.signal,
  })
  write.body = bodyOf(expected, context, write.response)
  return write.body === 'whole' ? 'read' : 'verdict'
}

/** The content shows what the write has changed. One beyond the bound streams on. */
const read = async (write: Write): Promise<Next> => {
  const { context, response, deps } = write
  if (response === undefined) throw outOfOrder()
  const reservation = deps.budget('write-answer', context.client.address)
  write.response = await bufferedResponse(response, context.service.limits.bodyBytes, reservation)
  return 'verdict'
}

/** What says which stored responses are stale now: the receipt, the table, or that none is. */
const verdict = (write: Write): Next => {
  const { context, claim, isTasksAlone, response, nonce } = write
  if (response === undefined) throw outOfOrder()
  write.storablePost = storageOfPost(write.storablePost, context, response)
  write.verdict = verdictOf(context, claim, isTasksAlone, response, nonce)
  context.record.writeKind = writeKindOf(context, write.verdict)
  if (leavesTasks(write.verdict)) write.awaited.push(dropForTasks(write))
  return response.content instanceof Readable ? 'open' : 'end'
}

/** Drops what the scheduled tasks may change that the write starts; undefined where it starts none. */
const dropForTasks = ({ deps, context, response, invalidator }: Write): Promise<unknown> | undefined => {
  if (!startsTasks(context.uncacheable)) return undefined
  const mayRun =
    response === undefined ? invalidator?.progress.outcome === 'unknown' : mayHaveStarted(response)
  return mayRun ? tasksStarted(deps, context) : undefined
}

/** The response streams: what its head says is dropped, and not stored until its end. */
const open = (write: Write): Next => {
  const { response, verdict, invalidator } = write
  if (response === undefined || verdict === undefined || invalidator === undefined) throw outOfOrder()
  write.awaited.push(invalidator.open(response, verdict))
  return 'respond'
}

/** The response is there: what it says is dropped, once and for all. */
const end = (write: Write): Next => {
  const { response, verdict, body, invalidator } = write
  if (response === undefined || verdict === undefined || invalidator === undefined) throw outOfOrder()
  write.awaited.push(invalidator.end(response, verdict, body))
  return 'respond'
}

/** The client gets it once everything that stores responses has dropped what the write changed. */
const respond = async (write: Write): Promise<Next> => {
  const { response, invalidator, storablePost } = write
  if (response === undefined || invalidator === undefined) throw outOfOrder()
  // Before the wait, so that invalidations by other writes during it count.
  write.reply = withStorage(response, invalidator, storablePost)
  await Promise.all(write.awaited)
  return undefined
}

/** Its content is stored for later reads where it may be; one that streams drops again before each piece. */
const withStorage = (
  response: GatewayResponse,
  invalidator: WriteInvalidator,
  storablePost: PostResponse | undefined,
): GatewayResponse => {
  const { content, headers } = response
  const post = storablePost?.begin(response)
  if (!(content instanceof Readable)) {
    void post?.store(content ?? Buffer.alloc(0), () => undefined)
    return response
  }
  const declared = headerValue(headers, 'content-length')
  const storing = storablePost && post && { ...storablePost, post }
  const length = declared === undefined ? undefined : Number(declared)
  return { ...response, content: invalidator.forwarded(content, length, storing) }
}

const steps: Readonly<Record<RequestStep, (write: Write) => Next | Promise<Next>>> = {
  judge,
  pass,
  register,
  forward,
  read,
  verdict,
  open,
  end,
  respond,
}

/** No whole response comes: everything that the write may have changed is dropped, unless nothing was sent or `end` has dropped it. */
const breakOff = async (write: Write): Promise<void> => {
  discard(write.response?.content)
  void Promise.allSettled(write.awaited)
  await write.invalidator?.breakOff()
  await dropForTasks(write)
}

/**
 * Forwards a write, and drops what it may have changed, here and wherever else it is stored, before its client gets the response: a read
 * that begins after it gets nothing older. A table of steps, each of which names the next one; docs/request-path.md has a row for each.
 */
export const write = async (
  deps: CacheDeps,
  context: ValidatedContext,
  forwardOutgoing: ForwardOutgoing,
): Promise<GatewayResponse> => {
  const underWay = new Write(deps, context, forwardOutgoing)
  const trace = context.record.trace?.write
  try {
    let step: Next = 'judge'
    while (step !== undefined) {
      trace?.(step)
      const next: Next | Promise<Next> = steps[step](underWay)
      // Nothing else runs between a drop and `respond`.
      step = next instanceof Promise ? await next : next
    }
    if (underWay.reply === undefined) throw outOfOrder()
    return underWay.reply
  } catch (error) {
    trace?.('break-off')
    await breakOff(underWay)
    throw error
  }
}
