import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { randomFrom } from '../../support/random.ts'
import { type FaultName, faults } from './faulty-upstream.ts'

/** What clients counted. */
export type Tally = {
  /** Requests that were answered, by status class; `cut`: the content broke off behind a head. */
  readonly responded: Record<string, number>
  /** Clients that went away before the response, which the gateway may have taken note of or not. */
  abandoned: number
  /** Responses that said so in Cache-Status. */
  hits: number
  /** Bytes that were no request, each refused. */
  malformed: number
  /** What came in place of what was expected. */
  readonly unexpected: string[]
}

type Reply = { readonly status: number; readonly hit: boolean; readonly text: string; readonly cut: boolean }

type Sent = {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: Buffer | string
  /** Goes away when the first piece of the content has come. */
  readonly leavesEarly?: boolean
}

const site = '/index.php/site-json'
const json = { 'Content-Type': 'application/json' }
const bearer = { Authorization: 'Bearer soak' }
const upload = Buffer.alloc(512 * 1024, 'u')

/** A 5xx is expected from these only, and only one of these. */
const faultStatuses: Readonly<Record<FaultName, readonly number[]>> = {
  reset: [502],
  'half-head': [502],
  'half-content': [200, 502],
  garbage: [502],
  unavailable: [503],
  broken: [500],
  silent: [504],
}

/** Sends the mixed load of the soak until it is stopped. */
export const createLoad = (origin: string, seed: number) => {
  const { hostname, port } = new URL(origin)
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const random = randomFrom(seed)
  const below = (n: number): number => Math.floor(random() * n)
  const tally: Tally = { responded: {}, abandoned: 0, hits: 0, malformed: 0, unexpected: [] }

  const send = (
    { method = 'GET', path, headers = {}, content, leavesEarly }: Sent,
    signal?: AbortSignal,
  ): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          agent,
          hostname,
          port,
          method,
          path,
          headers: { ...headers, ...(content === undefined ? {} : { 'Content-Length': content.length }) },
          ...(signal === undefined ? {} : { signal }),
        },
        (incoming: IncomingMessage) => {
          const chunks: Buffer[] = []
          const done = (cut: boolean): void =>
            resolve({
              status: incoming.statusCode ?? 0,
              hit: String(incoming.headers['cache-status']).includes('hit'),
              text: Buffer.concat(chunks).toString(),
              cut,
            })
          incoming.on('data', (chunk: Buffer) => {
            chunks.push(chunk)
            if (leavesEarly === true) incoming.destroy()
          })
          incoming.on('end', () => done(false))
          incoming.on('error', () => {})
          incoming.on('close', () => done(!incoming.complete))
        },
      )
      sent.on('error', reject)
      sent.end(content)
    })
  const note = (what: string, reply: Reply, expected: readonly number[]): Reply => {
    const bucket = `${Math.floor(reply.status / 100)}xx`
    tally.responded[bucket] = (tally.responded[bucket] ?? 0) + 1
    if (reply.hit) tally.hits += 1
    if (!expected.includes(reply.status))
      tally.unexpected.push(`${what}: ${reply.status} ${reply.text.slice(0, 120)}`)
    return reply
  }
  const expectOnly = async (what: string, sent: Sent, ...expected: number[]): Promise<Reply> =>
    note(what, await send(sent), expected)
  const put = (path: string, what: string, expected: readonly number[]): Promise<unknown> =>
    expectOnly(
      what,
      { method: 'PUT', path, headers: json, content: `{"title":"t${below(100)}"}` },
      ...expected,
    )

  const abandon = async (): Promise<void> => {
    const gone = new AbortController()
    const timer = setTimeout(() => gone.abort(), 60)
    await send({ path: `/open/slow/${below(1_000)}` }, gone.signal).then(
      (reply) => note('abandoned', reply, [200]),
      () => {
        tally.abandoned += 1
      },
    )
    clearTimeout(timer)
  }
  const malform = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(Number(port), hostname)
      let said = ''
      socket.on('data', (chunk) => {
        said += chunk
      })
      socket.on('error', () => {})
      socket.on('close', () => {
        tally.malformed += 1
        if (!/^HTTP\/1\.1 4\d\d /.test(said)) tally.unexpected.push(`malformed: ${said.slice(0, 80)}`)
        resolve()
      })
      const lines = [
        'Host : a',
        'Host: a\r\nHost: b',
        'Host: a\r\nContent-Length: 1\r\nContent-Length: 2',
        'Host: a\r\nTransfer-Encoding: gzip, chunked',
        `Host: a\r\nX: ${'x'.repeat(20_000)}`,
      ]
      socket.write(`POST /open/x HTTP/1.1\r\n${lines[below(lines.length)]}\r\n\r\n`)
    })
  const batch = async (): Promise<void> => {
    const requests = Array.from({ length: 5 }, () => ({
      method: 'PUT',
      path: `/site/v2/posts/${1 + below(50)}`,
      body: { title: 'b' },
    }))
    const reply = await expectOnly(
      'batch',
      { method: 'POST', path: `${site}/batch/v1`, headers: json, content: JSON.stringify({ requests }) },
      207,
    )
    const statuses = (JSON.parse(reply.text) as { responses: { status: number }[] }).responses.map(
      ({ status }) => status,
    )
    if (statuses.some((status) => status !== 200)) tally.unexpected.push(`batch items: ${statuses.join()}`)
  }
  const fault = async (): Promise<void> => {
    const name = faults[below(faults.length)] as FaultName
    const expected = faultStatuses[name]
    const path =
      below(2) === 0
        ? `/open/fault-${name}/${below(1_000)}`
        : `${site}/site/v2/pages?search=fault-${name}-${below(1_000)}`
    if (below(3) > 0) await expectOnly(name, { path }, ...expected)
    else if (path.startsWith('/open'))
      await expectOnly(name, { method: 'POST', path, content: 'x'.repeat(2_000) }, ...expected)
    else await put(`${site}/site/v2/pages/${1 + below(9)}?slug=fault-${name}`, name, expected)
  }

  /** Weights and what they stand for. */
  const kinds: readonly (readonly [number, () => Promise<unknown>])[] = [
    [40, () => expectOnly('hit', { path: `${site}/site/v2/posts/${1 + below(50)}` }, 200)],
    [12, () => expectOnly('miss', { path: `${site}/site/v2/posts?search=s${below(20_000)}` }, 200)],
    [6, () => expectOnly('plants', { path: `/plants?limit=${1 + below(20)}`, headers: bearer }, 200)],
    [8, () => put(`${site}/site/v2/posts/${1 + below(50)}`, 'write', [200])],
    [4, batch],
    [
      5,
      () =>
        expectOnly('pass-through', { method: 'POST', path: '/open/echo', content: 'x'.repeat(4_000) }, 200),
    ],
    [3, () => expectOnly('large', { path: `/open/large/${below(50)}` }, 200)],
    [2, () => expectOnly('left early', { path: `/open/large/${below(50)}`, leavesEarly: true }, 200)],
    [
      2,
      () =>
        expectOnly(
          'upload',
          {
            method: 'POST',
            path: `${site}/site/v2/media`,
            headers: { 'Content-Type': 'image/png', 'Content-Disposition': 'attachment; filename="a.png"' },
            content: upload,
          },
          200,
        ),
    ],
    [
      4,
      () =>
        expectOnly('bad parameter', { path: `${site}/site/v2/posts?per_page=${1_000 + below(1_000)}` }, 400),
    ],
    [
      2,
      () =>
        expectOnly(
          'bad JSON',
          { method: 'POST', path: `${site}/site/v2/posts`, headers: json, content: '{"title":' },
          400,
        ),
    ],
    [2, () => expectOnly('unknown route', { path: `/nowhere/${below(1e9)}` }, 404)],
    [2, malform],
    [2, abandon],
    [6, fault],
  ]
  const total = kinds.reduce((sum, [weight]) => sum + weight, 0)
  const pick = (): (() => Promise<unknown>) => {
    let left = random() * total
    for (const [weight, run] of kinds) {
      left -= weight
      if (left < 0) return run
    }
    return malform
  }
  const worker = async (goesOn: () => boolean): Promise<void> => {
    while (goesOn()) {
      try {
        await pick()()
      } catch (error) {
        tally.unexpected.push(`client: ${String(error)}`)
      }
    }
  }
  return {
    tally,
    run: async (workers: number, goesOn: () => boolean): Promise<void> => {
      await Promise.all(Array.from({ length: workers }, () => worker(goesOn)))
      agent.destroy()
    },
  }
}
