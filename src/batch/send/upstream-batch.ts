import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { UpstreamBatchRoute } from '../../service/contract.ts'
import type { UpstreamBatchResult } from '../events.ts'
import type { ItemResponse } from '../item.ts'
import { waitedFor } from './retry-after.ts'
import { readUpstreamBatch, type UpstreamItem, upstreamBatchContent } from './upstream-batch-format.ts'

type JoiningItem = UpstreamItem & {
  alone(): Promise<GatewayResponse>
}

/** The items of an upstream batch that go through `handle` in one turn of the event loop: well under a millisecond. */
export const itemsPerTurn = 3

type UpstreamBatchOptions = Pick<UpstreamBatchRoute, 'refusesWhole'> & {
  readonly size: number
  /** Sends a request to the upstream's batch route, and reads the response. */
  forward(content: Buffer): Promise<WholeResponse>
  /** Aborted when nothing more shall begin. */
  readonly stop: AbortSignal
  /** Until the batch must be answered; infinite where it need not. */
  leftMs(): number
  readonly clock: Pick<Clock, 'now'>
  /** Awaited between groups of items: each returns through `handle` as soon as it has its response. */
  readonly turn: () => Promise<void>
  readonly watch: UpstreamBatchWatch
  /** Has the upstream received some of the request? */
  isSent(): boolean
}

/** Read whole: each item gets what it says. */
type WholeResponse = GatewayResponse & { readonly content: Buffer }

/** Called for each request to the upstream: there are two after a 429 with Retry-After. */
export type UpstreamBatchWatch = {
  begun(): void
  ended(result: UpstreamBatchResult): void
}

/**
 * Items that are sent to the upstream in one batch. Each passes `handle` and joins, or leaves when it was answered
 * before; when all have joined or left, the batch is sent, and each item continues with its own response.
 */
type UpstreamBatch = {
  join(place: number, request: JoiningItem): Promise<SeatResponse>
  leave(place: number): void
}

type Seat = {
  readonly request: JoiningItem
  resolve(response: SeatResponse): void
  reject(error: unknown): void
}

type SeatResponse = GatewayResponse & Pick<ItemResponse, 'isJson'>

/**
 * In order, one after the other: which of them wait for each other is not known here. Their receipts do not count: they say nothing of
 * what the refused batch may have written.
 */
const oneByOne = async (seats: readonly Seat[], stop: AbortSignal): Promise<void> => {
  for (const { request, resolve, reject } of seats) {
    if (stop.aborted) reject(new GatewayError('not_sent'))
    else await request.alone().then((response) => resolve({ ...response, hints: undefined }), reject)
  }
}

/** An upstream batch without items so far; nothing is sent until all items have joined or left. */
export const createUpstreamBatch = (options: UpstreamBatchOptions): UpstreamBatch => {
  const seats = new Map<number, Seat | 'left'>()

  const respondToEach = async (
    present: readonly Seat[],
    { hints, isRepeated }: GatewayResponse,
    responses: readonly ItemResponse[],
  ): Promise<void> => {
    const ofAll = { hints, ...(isRepeated === true ? { isRepeated } : {}) }
    for (const [at, { resolve }] of present.entries()) {
      // Before the first ones, too: reading them has taken its time.
      if (at % itemsPerTurn === 0) await options.turn()
      resolve({ ...(responses[at] as ItemResponse), ...ofAll })
    }
  }

  const deliver = async (present: readonly Seat[], response: WholeResponse): Promise<void> => {
    const { status, content } = response
    const reply = readUpstreamBatch(status, content, present.length, options.refusesWhole)
    options.watch.ended(reply.kind)
    switch (reply.kind) {
      case 'answered':
        return respondToEach(present, response, reply.responses)
      case 'not-run':
        return oneByOne(present, options.stop)
      case 'limited':
        for (const { resolve } of present) resolve(response)
        return
      case 'broken':
        for (const { reject } of present) reject(new GatewayError('upstream_broken'))
    }
  }

  const forwardOnce = (content: Buffer): Promise<WholeResponse> => {
    options.watch.begun()
    return options.forward(content)
  }

  /** Once more if the upstream has run no item and names a short time (RFC 6585 §4). */
  const forwardHonouringRetryAfter = async (content: Buffer): Promise<WholeResponse> => {
    const first = await forwardOnce(content)
    const waited = await waitedFor(first, options.leftMs(), options.clock.now(), options.stop)
    if (waited === 'none') return first
    options.watch.ended('limited')
    if (waited === 'over') throw new GatewayError('not_sent')
    // The receipt is that of the last request alone.
    return { ...(await forwardOnce(content)), hints: undefined }
  }

  const send = async (): Promise<void> => {
    const places = [...seats].sort(([place], [otherPlace]) => place - otherPlace)
    const present = places.map(([, seat]) => seat).filter((seat) => seat !== 'left')
    if (present.length === 0) return
    let response: WholeResponse
    try {
      response = await forwardHonouringRetryAfter(upstreamBatchContent(present.map(({ request }) => request)))
    } catch (error) {
      options.watch.ended(options.isSent() ? 'broken' : 'not-sent')
      for (const { reject } of present) reject(error)
      return
    }
    // Responses to several upstream batches may arrive in one turn of the event loop.
    await options.turn()
    await deliver(present, response)
  }

  const take = (place: number, seat: Seat | 'left'): void => {
    if (seats.has(place)) return
    seats.set(place, seat)
    if (seats.size === options.size) void send()
  }

  return {
    join: (place, request) => new Promise((resolve, reject) => take(place, { request, resolve, reject })),
    leave: (place) => take(place, 'left'),
  }
}
