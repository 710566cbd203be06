import { connect } from 'node:net'
import { oneOf, type Random, randomFrom } from '../../support/random.ts'
import { type Message, MessageReader } from './messages.ts'
import { contentOf, inChunks, type Plan, planOf, writeCut } from './plan.ts'

/** What the clients of a run have counted. */
export type Tally = {
  exchanges: number
  readonly statuses: Record<string, number>
  /** Responses that broke off, as their plan says. */
  cut: number
  /** Requests behind one whose response ended the connection; RFC 9112 §9.3.2 has the client send them again. */
  unanswered: number
  abandoned: number
  malformed: number
  hits: number
  /** What is wrong, with the number of its exchange. */
  readonly wrong: string[]
}

type Exchange = {
  readonly number: number
  readonly mount: string
  readonly plan: Plan
  /** When its first octet was written. */
  beganMs: number
}

const timeoutMs = 60_000

/**
 * Below limits.minBytesPerSecond for ten seconds, or ten seconds for a head: 408. In pieces of one octet the clients of a busy machine
 * are that slow.
 */
const slowMs = 9_000

const requestOf = ({ number, mount, plan }: Exchange, random: Random): Buffer => {
  const { method, sent } = plan
  const lines = [`${method} ${mount}/${number} HTTP/1.1`, 'Host: fuzz.test', `X-Number: ${number}`]
  if (random() < 0.1) lines.push('connection: keep-alive', 'Accept-Encoding:')
  const content = contentOf(number, sent.length, 'request')
  if (method === 'GET' || method === 'HEAD') return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  lines.push(sent.isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${sent.length}`)
  const body = sent.isChunked ? inChunks(random, content, { ...sent, trailers: random() < 0.2 }) : content
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')
}

const malformed = [
  'GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'GET\t/x HTTP/1.1\r\n\r\n',
  'POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'GET /x HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
]

/** Statuses that the gateway may answer with; undefined where only what the upstream sent is right. */
const mayFail = ({ fault, isEarly, sent }: Plan): boolean =>
  (fault !== undefined && fault !== 'extra') ||
  // The upstream may close its connection before it has read the content.
  (isEarly && sent.length > 0)

const mayBeTooSlow = ({ plan: { sent }, beganMs }: Exchange): boolean =>
  sent.cut !== 'whole' && performance.now() - beganMs >= slowMs

const told = (exchange: Exchange | undefined): string => JSON.stringify(exchange)

const faultOf = (exchange: Exchange, { startLine, content }: Message): string | undefined => {
  const { plan, number } = exchange
  const status = Number(startLine.split(' ')[1])
  if (status === 502 && mayFail(plan)) return undefined
  if (status === 408 && mayBeTooSlow(exchange)) return undefined
  const expected =
    plan.method === 'HEAD' || plan.status === 204 ? '' : contentOf(number, plan.length, 'response')
  if (status !== plan.status) return `${told(exchange)}: ${startLine}, ${content.slice(0, 200)}`
  return content === expected ? undefined : `${told(exchange)}: another content`
}

const isInterim = ({ startLine }: Message): boolean => /^HTTP\/1\.1 1\d\d /.test(startLine)

const faultOfUnasked = ({ startLine }: Message, isMalformed: boolean): string | undefined =>
  isMalformed && startLine.startsWith('HTTP/1.1 400 ') ? undefined : `${startLine} without a request`

const count = (tally: Tally, { startLine, headers }: Message): void => {
  const status = startLine.split(' ')[1] ?? ''
  tally.statuses[status] = (tally.statuses[status] ?? 0) + 1
  if (/; hit/.test(headers.get('cache-status') ?? '')) tally.hits += 1
}

/** Sends some requests over one connection, at once or one after the other, and checks what comes. */
const converse = (origin: URL, exchanges: readonly Exchange[], random: Random, tally: Tally): Promise<void> =>
  new Promise((resolve) => {
    const kind = random()
    const abandonsAfter = kind < 0.05 ? Math.floor(random() * 30) : undefined
    const isMalformed = kind > 0.97
    const socket = connect(Number(origin.port), origin.hostname)
    const left = [...exchanges]
    let isOver = false
    let mayEnd = isMalformed
    const finish = (fault?: string): void => {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      socket.destroy()
      if (fault !== undefined) tally.wrong.push(fault)
      resolve()
    }
    const timer = setTimeout(
      () =>
        finish(`${left[0]?.number}: no response in ${timeoutMs} ms, plan ${JSON.stringify(left[0]?.plan)}`),
      timeoutMs,
    )
    if (abandonsAfter !== undefined) {
      tally.abandoned += 1
      setTimeout(finish, abandonsAfter)
    }
    const ended = (message: Message): void => {
      if (isInterim(message)) return
      const exchange = left.shift()
      count(tally, message)
      mayEnd ||= message.headers.get('connection') === 'close'
      const fault = exchange === undefined ? faultOfUnasked(message, isMalformed) : faultOf(exchange, message)
      if (fault !== undefined || (left.length === 0 && !isMalformed)) finish(fault)
    }
    const hasContent = ({ startLine }: Message): boolean =>
      !/^HTTP\/1\.1 (?:1\d\d|204|304) /.test(startLine) && left[0]?.plan.method !== 'HEAD'
    const reader = new MessageReader({ ended, hasContent })
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      try {
        reader.read(bytes)
      } catch (error) {
        finish(`${left[0]?.number}: ${String(error)}`)
      }
    })
    socket.once('close', () => {
      if (left.length === 0 || isOver) return finish()
      // A response that breaks off ends the connection; with requests behind it, by a reset that overtakes what was sent before.
      const isCut = left.some(({ plan }) => mayFail(plan))
      if (isCut) tally.cut += 1
      else if (!mayEnd) return finish(`${told(left[0])}: the connection ended without a response`)
      tally.unanswered += left.length - (isCut ? 1 : 0)
      finish()
    })
    const send = async (): Promise<void> => {
      const write = (bytes: Buffer): void => {
        if (socket.writable) socket.write(bytes)
      }
      for (const exchange of exchanges) {
        if (isOver) return
        exchange.beganMs = performance.now()
        await writeCut(write, requestOf(exchange, random), exchange.plan.sent.cut, random)
      }
      if (isMalformed) {
        tally.malformed += 1
        write(Buffer.from(oneOf(random, malformed), 'latin1'))
      }
    }
    void send()
  })

/** Targets that come again, so that some are stored. */
const repeated = 300
const lines = 24

/** As many exchanges as asked for, over several connections at a time. */
export const createClients = (origin: string, seed: number) => {
  const url = new URL(origin)
  const tally: Tally = {
    exchanges: 0,
    statuses: {},
    cut: 0,
    unanswered: 0,
    abandoned: 0,
    malformed: 0,
    hits: 0,
    wrong: [],
  }
  const next = (random: Random): Exchange => {
    tally.exchanges += 1
    const isRead = random() < 0.7
    const isRuled = isRead && random() < 0.5
    const number = isRuled ? Math.floor(random() * repeated) : repeated + tally.exchanges
    return {
      number,
      mount: `${isRuled ? '/ruled' : '/passed'}/${isRead ? 'r' : 'w'}`,
      plan: planOf(seed, number, isRead),
      beganMs: Number.POSITIVE_INFINITY,
    }
  }
  const line = async (at: number, goesOn: () => boolean): Promise<void> => {
    const random = randomFrom(seed * 1_000 + at)
    while (goesOn()) {
      const exchanges = Array.from({ length: 1 + Math.floor(random() ** 2 * 6) }, () => next(random))
      await converse(url, exchanges, random, tally)
    }
  }
  return {
    tally,
    run: async (goesOn: () => boolean): Promise<void> => {
      await Promise.all(Array.from({ length: lines }, (_, at) => line(at, goesOn)))
    },
  }
}
