import { createHash, createHmac, randomBytes } from 'node:crypto'
import { type Origin, type Script, startOrigin } from './origin.ts'

type Row = {
  readonly sequence: number
  readonly check?: string
  readonly site?: number
  readonly state: 'open' | 'closed' | 'dead'
  readonly reads?: boolean
  readonly changes?: readonly unknown[]
}

/** A scripted WordPress with the companion: posts that have a version, and a log of their changes. */
export type Companion = {
  readonly origin: Origin
  readonly token: string
  incarnation: string
  fingerprint: string
  /** Rows by their sequence; a test may add, remove and change them. */
  readonly rows: Map<number, Row>
  first: number
  last: number
  /** undefined: polls are answered from `rows`. */
  respondToPoll: Script | undefined
  /** Responses to polls by the row that they ask for, of a cache that ignores all other parameters; undefined: there is none. */
  cacheOnTheWay: Map<string, string> | undefined
  /** Every request is answered with 500. */
  down: boolean
  /** Fields of every response of the interface. */
  headers: Record<string, string>
  /** What WordPress does before it sends the response to a read. */
  beforeResponse: (() => Promise<void>) | undefined
  /** Rows in one response. */
  maxRows: number
  readonly polls: URLSearchParams[]
  /** Changes a post and reports nothing; gives its new version. */
  change(id: number): number
  version(id: number): number
  /** Changes a post and writes a row of the log. */
  write(id: number): Row & { readonly sequence: number }
  /** Sends a row to the admin side of a gateway, as WordPress does at the end of a PHP request. */
  push(adminAddress: string, row: Row, more?: object): Promise<Response>
  sign(method: string, target: string, body: string, time?: number): string
  /** Answers every request that is no GET; undefined: a statement that nothing was written. */
  respondToWrite: Script | undefined
  /** The value of Trellis-Statement for a request with this Trellis-Nonce. */
  state(text: string, asked: string | undefined, secret?: string): string
  close(): Promise<void>
}

/** The nonce of a poll, which its response repeats. */
export const nonceOf = (target: string): string =>
  new URL(target, 'http://companion.test').searchParams.get('nonce') ?? ''

export const postChange = (id: number, more: object = {}): object => ({
  kind: 'post',
  id,
  type: 'post',
  before: { status: 'publish' },
  after: { status: 'publish' },
  ...more,
})

export const startCompanion = async (token = 'token-of-the-companion'): Promise<Companion> => {
  const versions = new Map<number, number>()
  const rows = new Map<number, Row>()
  const polls: URLSearchParams[] = []
  const json = { 'Content-Type': 'application/json' }
  const key = createHash('sha256').update(token).digest('hex').slice(0, 16)

  const sign: Companion['sign'] = (method, target, body, time = Math.floor(Date.now() / 1000)) => {
    const hmac = createHmac('sha256', token).update(`${method}\n${target}\n${time}\n${body}`).digest('hex')
    return `key=${key}, time=${time}, hmac=${hmac}`
  }

  const respondWithLog = (query: URLSearchParams): string => {
    const [sequence, check] = query.get('known')?.split('.') ?? []
    // Without rows it is a log that compares none.
    const isOther = rows.size > 0 && sequence !== undefined && rows.get(Number(sequence))?.check !== check
    if (isOther && query.get('incarnation') === companion.incarnation) {
      companion.incarnation = randomBytes(16).toString('hex')
    }
    const asked =
      query.get('incarnation') === companion.incarnation ? Number(query.get('trellis-changes')) : 0
    const found = [...rows.values()]
      .filter(({ sequence, state }) => sequence > asked || state === 'open')
      .sort((a, b) => a.sequence - b.sequence)
    const { incarnation, first, last, fingerprint, maxRows } = companion
    const more = found.length > maxRows
    const nonce = query.get('nonce')
    return JSON.stringify({
      ...{ incarnation, first, last, fingerprint, rows: found.slice(0, maxRows), more, nonce },
    })
  }

  const poll = (
    query: URLSearchParams,
    ...[request, wire, count]: Parameters<Script>
  ): void | Promise<void> => {
    polls.push(query)
    if (companion.respondToPoll !== undefined) return companion.respondToPoll(request, wire, count)
    const signed = request.headers['trellis-signature'] ?? ''
    const time = Number(/time=(\d+)/.exec(signed)?.[1])
    const isSigned = signed === sign('GET', request.target, '', time)
    if (!isSigned) return wire.respond({ status: 401, content: '' })
    const after = query.get('trellis-changes') ?? ''
    const content = companion.cacheOnTheWay?.get(after) ?? respondWithLog(query)
    companion.cacheOnTheWay?.set(after, content)
    return wire.respond({ headers: { ...json, 'Cache-Control': 'no-store' }, content })
  }

  const script: Script = async (request, wire, count) => {
    if (companion.down) return wire.respond({ status: 500 })
    if (request.method !== 'GET') {
      if (companion.respondToWrite !== undefined) return companion.respondToWrite(request, wire, count)
      const statement = companion.state('nothing', request.headers['trellis-nonce'])
      return wire.respond({ headers: { ...json, 'Trellis-Statement': statement }, content: '{}' })
    }
    const url = new URL(request.target, 'http://companion.test')
    if (url.searchParams.has('trellis-changes')) {
      return poll(url.searchParams, request, wire, count)
    }
    const [, id] = /\/posts\/(\d+)$/.exec(url.pathname) ?? []
    const shown = (one: number) => ({
      id: one,
      type: 'post',
      title: { rendered: `v${companion.version(one)}` },
    })
    await companion.beforeResponse?.()
    const content = id === undefined ? [1, 2, 3].map(shown) : shown(Number(id))
    return wire.respond({ headers: { ...json, ...companion.headers }, content: JSON.stringify(content) })
  }

  const origin = await startOrigin(script)
  const companion: Companion = {
    origin,
    token,
    incarnation: randomBytes(16).toString('hex'),
    fingerprint: 'f1',
    rows,
    first: 1,
    last: 0,
    respondToPoll: undefined,
    cacheOnTheWay: undefined,
    down: false,
    headers: {},
    beforeResponse: undefined,
    maxRows: 500,
    polls,
    change: (id) => {
      versions.set(id, companion.version(id) + 1)
      return companion.version(id)
    },
    version: (id) => versions.get(id) ?? 1,
    write: (id) => {
      companion.change(id)
      companion.last += 1
      const check = randomBytes(8).toString('hex')
      const row: Row = { sequence: companion.last, check, state: 'closed', changes: [postChange(id)] }
      rows.set(row.sequence, row)
      return row
    },
    push: (adminAddress, { sequence, check, site = 1, changes }, more = {}) => {
      const { incarnation, fingerprint } = companion
      const previous = Math.max(0, sequence - 1)
      const body = JSON.stringify({
        incarnation,
        site,
        sequence,
        check,
        previous,
        fingerprint,
        changes,
        overflow: false,
        ...more,
      })
      return fetch(`${adminAddress}/changes`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Trellis-Signature': sign('POST', '/changes', body) },
        body,
      })
    },
    sign,
    respondToWrite: undefined,
    state: (text, asked = '', secret = token) => {
      const [nonce] = asked.split('.')
      const hmac = createHmac('sha256', secret).update(`statement\n${nonce}\n${text}`).digest('hex')
      return `${text}; hmac=${hmac}`
    },
    close: () => origin.close(),
  }
  return companion
}
