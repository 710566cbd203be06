import { type ErrorCode, GatewayError } from '../../errors.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { ChunkResult } from '../events.ts'
import type { ItemAnswer } from '../item.ts'
import { type ChunkAnswer, readChunkAnswer } from './chunk-answer.ts'
import { waitedFor } from './retry-after.ts'
import { type EventLoopYield, itemsPerTurn } from './semaphore.ts'

/** One item as it goes into an upstream batch, in the upstream's names. */
type ChunkItem = {
  readonly method: string
  /** Path and query relative to the REST root. */
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  /** JSON, copied as it is. */
  readonly content: Buffer | undefined
}

const itemContent = ({ method, path, fields, content }: ChunkItem): Buffer => {
  const head = JSON.stringify({
    method,
    path,
    ...(Object.keys(fields).length > 0 ? { headers: fields } : {}),
  })
  if (content === undefined) return Buffer.from(head)
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"body":`), content, Buffer.from('}')])
}

/** The body of an upstream batch. Its items have been admitted, so `normal` validation is requested: no item decides over others. */
const chunkContent = (items: readonly ChunkItem[]): Buffer => {
  const pieces: Buffer[] = [Buffer.from('{"validation":"normal","requests":[')]
  for (const [at, item] of items.entries()) {
    if (at > 0) pieces.push(Buffer.from(','))
    pieces.push(itemContent(item))
  }
  pieces.push(Buffer.from(']}'))
  return Buffer.concat(pieces)
}

/** An item that has come through the pipeline as far as the upstream. */
type ChunkRequest = ChunkItem & {
  /** Sends it as a request of its own. */
  alone(): Promise<GatewayResponse>
}

/** What a chunk needs. */
type ChunkOptions = {
  readonly size: number
  /** Sends a request to the upstream's batch route, and reads the response. */
  ask(content: Buffer): Promise<Asked>
  /** Aborted when nothing more shall begin. */
  readonly stop: AbortSignal
  /** Until the batch must be answered; infinite where it need not. */
  leftMs(): number
  /** Awaited between groups of items: each goes back through the pipeline as soon as it has its answer. */
  readonly turn: EventLoopYield
  readonly watch: ChunkWatch
}

type Asked = { readonly response: GatewayResponse; readonly content: Buffer }

/** Called for each request to the upstream: there are two after a 429 with Retry-After. */
export type ChunkWatch = {
  begun(): void
  ended(result: ChunkResult): void
}

/**
 * Items that go to the upstream in one batch. Each comes through the pipeline and joins, or leaves when it was answered
 * before; when all have joined or left, the batch is sent, and each item continues with its own answer.
 */
type Chunk = {
  join(place: number, request: ChunkRequest): Promise<SeatAnswer>
  leave(place: number): void
}

type Seat = {
  readonly request: ChunkRequest
  resolve(response: SeatAnswer): void
  reject(error: unknown): void
}

/** An item's answer; `isPart`: it was cut out of JSON that has been parsed, and so is JSON. */
type SeatAnswer = GatewayResponse & { readonly isPart?: true }

const asResponse = ({ status, fields, content }: ItemAnswer): SeatAnswer => ({
  status,
  fields,
  content,
  isPart: true,
})

/** In order, one after the other: which of them wait for each other is not known here. */
const oneByOne = async (seats: readonly Seat[], stop: AbortSignal): Promise<void> => {
  for (const { request, resolve, reject } of seats) {
    if (stop.aborted) reject(new GatewayError('not_sent'))
    else await request.alone().then(resolve, reject)
  }
}

/** These say that the upstream never saw the request. */
const neverSent: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_busy',
  'upstream_unreachable',
  'shutting_down',
  'loop_detected',
  'not_sent',
])

const resultOf = (thrown: unknown): ChunkResult =>
  thrown instanceof GatewayError && neverSent.has(thrown.code) ? 'not-sent' : 'broken'

/** An empty chunk; nothing is sent until all items have joined or left. */
export const createChunk = (options: ChunkOptions): Chunk => {
  const seats = new Map<number, Seat | 'left'>()

  const giveBack = async (present: readonly Seat[], answers: readonly ItemAnswer[]): Promise<void> => {
    for (const [at, { resolve }] of present.entries()) {
      // Before the first ones, too: reading them has taken its time.
      if (at % itemsPerTurn === 0) await options.turn()
      resolve(asResponse(answers[at] as ItemAnswer))
    }
  }

  const deliver = async (
    present: readonly Seat[],
    response: GatewayResponse,
    answer: ChunkAnswer,
  ): Promise<void> => {
    options.watch.ended(answer.kind)
    switch (answer.kind) {
      case 'answered':
        return giveBack(present, answer.answers)
      case 'not-run':
        return oneByOne(present, options.stop)
      case 'limited':
        for (const { resolve } of present) resolve(response)
        return
      case 'broken':
        for (const { reject } of present) reject(new GatewayError('upstream_broken'))
    }
  }

  const askOnce = (content: Buffer): Promise<Asked> => {
    options.watch.begun()
    return options.ask(content)
  }

  /** Once more where the upstream has run nothing of it and names a short time (RFC 6585 §4). */
  const ask = async (content: Buffer): Promise<Asked> => {
    const first = await askOnce(content)
    const waited = await waitedFor(first.response, options.leftMs(), options.stop)
    if (waited === 'none') return first
    options.watch.ended('limited')
    if (waited === 'over') throw new GatewayError('not_sent')
    return askOnce(content)
  }

  const send = async (): Promise<void> => {
    const places = [...seats].sort(([one], [other]) => one - other)
    const present = places.map(([, seat]) => seat).filter((seat) => seat !== 'left')
    if (present.length === 0) return
    let asked: Asked
    try {
      asked = await ask(chunkContent(present.map(({ request }) => request)))
    } catch (thrown) {
      options.watch.ended(resultOf(thrown))
      for (const { reject } of present) reject(thrown)
      return
    }
    const { response, content } = asked
    // Answers to several chunks may have come in one turn of the event loop.
    await options.turn()
    await deliver(present, response, readChunkAnswer(response.status, content, present.length))
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
