import type { Clock } from '../../clock.ts'
import { GatewayError } from '../../errors.ts'
import type { HeaderLines } from '../../http/headers/header-lines.ts'
import { isJsonObject, type JsonText, parsedJson, valueEnd, visitValues } from '../../http/json-text.ts'
import type { GatewayResponse } from '../../http/message.ts'
import type { UpstreamBatch } from '../../service/contract.ts'
import type { ChunkResult } from '../events.ts'
import type { ItemResponse } from '../item.ts'
import { waitedFor } from './retry-after.ts'

/** What the upstream's response to a whole chunk means for its items. */
type ChunkResponse =
  /** In the order of the items; contents are the upstream's bytes. */
  | { readonly kind: 'answered'; readonly responses: readonly ItemResponse[] }
  /** The upstream refused the chunk as a whole: no item of it has run. */
  | { readonly kind: 'not-run' }
  /** Too many requests: no item of it has run, and nothing else should be tried now. */
  | { readonly kind: 'limited' }
  /** It is unknown which items ran. */
  | { readonly kind: 'broken' }

const namePattern = /^[!#$%&'*+.^`|~0-9A-Za-z-]{1,64}$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/

/** `headers` of an item as headers; `[]` is an empty map. */
const headerLines = (headers: unknown): HeaderLines => {
  // It stands in a JSON document, so it is JSON; names and URLs in it are translated as in its own response.
  const lines = ['Content-Type', 'application/json; charset=UTF-8']
  if (!isJsonObject(headers)) return lines
  for (const [name, value] of Object.entries(headers)) {
    for (const part of Array.isArray(value) ? value : [value]) {
      const text = String(part)
      if (namePattern.test(name) && valuePattern.test(text)) lines.push(name, text)
    }
  }
  return lines
}

/** The item that begins at `at`, and where it ends; of a repeated name the last one counts. */
const readItem = (text: JsonText, at: number): { readonly response?: ItemResponse; readonly end: number } => {
  if (text[at] !== '{') return { end: valueEnd(text, at) }
  let content: Buffer | undefined
  let status = Number.NaN
  let headers: JsonText = '[]'
  const end = visitValues(text, at, (from, name) => {
    const to = valueEnd(text, from)
    const value = text.slice(from, to)
    if (name === 'body') content = Buffer.from(value)
    else if (name === 'status') status = Number(value)
    else if (name === 'headers') headers = value
    return to
  })
  const isStatus = Number.isInteger(status) && status >= 200 && status <= 599
  if (content === undefined || !isStatus) return { end }
  return { end, response: { status, headers: headerLines(parsedJson(headers)), content, isJson: true } }
}

const itemResponses = (text: JsonText, size: number): ChunkResponse => {
  let responses: (ItemResponse | undefined)[] = []
  visitValues(text, 0, (from, name) => {
    if (name !== 'responses') return valueEnd(text, from)
    responses = []
    if (text[from] !== '[') return valueEnd(text, from)
    return visitValues(text, from, (at) => {
      const { response, end } = readItem(text, at)
      responses.push(response)
      return end
    })
  })
  const presentResponses = responses.filter((response) => response !== undefined)
  return presentResponses.length === size && responses.length === size
    ? { kind: 'answered', responses: presentResponses }
    : { kind: 'broken' }
}

/** Reads the response to a chunk of `size` items. Pure; after anything unexpected the outcome is unknown. */
const readChunkResponse = (
  status: number,
  content: Buffer,
  size: number,
  refusesWhole: UpstreamBatch['refusesWhole'],
): ChunkResponse => {
  if (status === 429) return { kind: 'limited' }
  const text = content.toString().trim()
  const body = parsedJson(text)
  // A request that is too large for the server in front does not reach the program behind it (RFC 9110 §15.5.14).
  if (status === 413 || refusesWhole(status, body)) return { kind: 'not-run' }
  const isWhole = text.startsWith('{') && isJsonObject(body) && body['failed'] === undefined
  return status === 207 && isWhole ? itemResponses(text, size) : { kind: 'broken' }
}

/** One item of an upstream batch, in the upstream's names. */
type ChunkItem = {
  readonly method: string
  /** Path and query relative to the REST root. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON, copied as it is. */
  readonly content: Buffer | undefined
}

const itemContent = ({ method, path, headers, content }: ChunkItem): Buffer => {
  const head = JSON.stringify({
    method,
    path,
    ...(Object.keys(headers).length > 0 ? { headers: headers } : {}),
  })
  if (content === undefined) return Buffer.from(head)
  return Buffer.concat([Buffer.from(`${head.slice(0, -1)},"body":`), content, Buffer.from('}')])
}

/** The body of an upstream batch. Its items have been checked, so `normal` validation is requested: no item decides over others. */
const chunkContent = (items: readonly ChunkItem[]): Buffer => {
  const pieces: Buffer[] = [Buffer.from('{"validation":"normal","requests":[')]
  for (const [at, item] of items.entries()) {
    if (at > 0) pieces.push(Buffer.from(','))
    pieces.push(itemContent(item))
  }
  pieces.push(Buffer.from(']}'))
  return Buffer.concat(pieces)
}

type ChunkRequest = ChunkItem & {
  alone(): Promise<GatewayResponse>
}

/** The items of a chunk that go through `handle` in one turn of the event loop: well under a millisecond. */
export const itemsPerTurn = 3

type ChunkOptions = Pick<UpstreamBatch, 'refusesWhole'> & {
  readonly size: number
  /** Sends a request to the upstream's batch route, and reads the response. */
  forward(content: Buffer): Promise<ForwardedChunk>
  /** Aborted when nothing more shall begin. */
  readonly stop: AbortSignal
  /** Until the batch must be answered; infinite where it need not. */
  leftMs(): number
  readonly clock: Pick<Clock, 'now'>
  /** Awaited between groups of items: each returns through `handle` as soon as it has its response. */
  readonly turn: () => Promise<void>
  readonly watch: ChunkWatch
  /** Has the upstream received some of the request? */
  isSent(): boolean
}

/** Read whole: each item gets what it says. */
type ForwardedChunk = GatewayResponse & { readonly content: Buffer }

/** Called for each request to the upstream: there are two after a 429 with Retry-After. */
export type ChunkWatch = {
  begun(): void
  ended(result: ChunkResult): void
}

/**
 * Items that are sent to the upstream in one batch. Each passes `handle` and joins, or leaves when it was answered
 * before; when all have joined or left, the batch is sent, and each item continues with its own response.
 */
type ItemChunk = {
  join(place: number, request: ChunkRequest): Promise<SeatResponse>
  leave(place: number): void
}

type Seat = {
  readonly request: ChunkRequest
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

/** An empty chunk; nothing is sent until all items have joined or left. */
export const createChunk = (options: ChunkOptions): ItemChunk => {
  const seats = new Map<number, Seat | 'left'>()

  const giveBack = async (
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

  const deliver = async (present: readonly Seat[], response: ForwardedChunk): Promise<void> => {
    const { status, content } = response
    const reply = readChunkResponse(status, content, present.length, options.refusesWhole)
    options.watch.ended(reply.kind)
    switch (reply.kind) {
      case 'answered':
        return giveBack(present, response, reply.responses)
      case 'not-run':
        return oneByOne(present, options.stop)
      case 'limited':
        for (const { resolve } of present) resolve(response)
        return
      case 'broken':
        for (const { reject } of present) reject(new GatewayError('upstream_broken'))
    }
  }

  const askOnce = (content: Buffer): Promise<ForwardedChunk> => {
    options.watch.begun()
    return options.forward(content)
  }

  /** Once more if the upstream has run no item and names a short time (RFC 6585 §4). */
  const ask = async (content: Buffer): Promise<ForwardedChunk> => {
    const first = await askOnce(content)
    const waited = await waitedFor(first, options.leftMs(), options.clock.now(), options.stop)
    if (waited === 'none') return first
    options.watch.ended('limited')
    if (waited === 'over') throw new GatewayError('not_sent')
    // The receipt is that of the last request alone.
    return { ...(await askOnce(content)), hints: undefined }
  }

  const send = async (): Promise<void> => {
    const places = [...seats].sort(([place], [otherPlace]) => place - otherPlace)
    const present = places.map(([, seat]) => seat).filter((seat) => seat !== 'left')
    if (present.length === 0) return
    let response: ForwardedChunk
    try {
      response = await ask(chunkContent(present.map(({ request }) => request)))
    } catch (error) {
      options.watch.ended(options.isSent() ? 'broken' : 'not-sent')
      for (const { reject } of present) reject(error)
      return
    }
    // Responses to several chunks may arrive in one turn of the event loop.
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
