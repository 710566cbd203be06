import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type RunningPeer, startPeer, startWorld } from './measure.ts'
import { chooseOther } from './pairs.ts'
import { plain, trellis } from './peers/trellis.ts'
import { mainThreadNanoseconds } from './processor-time.ts'
import { median, quantile } from './statistics.ts'
import { inTurns } from './turns.ts'

const path = '/index.php/site-json/site/v2/posts/1'
const body = '{"title":"x"}'
const dispatcher = new Agent({ connections: 8 })

/** A front end that confirms each purge at once, and states its process. */
const startReceiver = async () => {
  const processId = randomUUID()
  const bodyOf = async (incoming: IncomingMessage): Promise<Buffer> => Buffer.concat(await incoming.toArray())
  const server = createServer(async (incoming, response) => {
    await bodyOf(incoming)
    response.writeHead(204, { 'Trellis-Receiver': processId }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/purge`, close: () => server.close() }
}

const post = async (url: string): Promise<Record<string, unknown> & { readonly status: number }> => {
  const response = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Basic YTpi' },
    body,
    dispatcher,
  })
  await response.body.dump()
  return { ...response.headers, status: response.statusCode }
}

const write = async ({ origin }: Pick<RunningPeer, 'origin'>): Promise<void> => {
  const { status } = await post(origin + path)
  if (status !== 200) throw new Error(`a write was answered with ${status}`)
}

/** Until the receiver has confirmed the purge of the start, responses carry no tags. */
const caughtUp = async ({ origin }: Pick<RunningPeer, 'origin'>): Promise<void> => {
  const until = performance.now() + 30_000
  for (;;) {
    const { headers, body: content } = await request(origin + path, { dispatcher })
    await content.dump()
    if (headers['surrogate-key'] !== undefined) return
    if (performance.now() > until) throw new Error('the receiver does not catch up')
    await sleep(100)
  }
}

type Turn = { readonly aloneMs: number; readonly micros: number }

/** Writes one after another, for their time; then eight at a time, for the processor time of each. */
const turnOf = async (peer: RunningPeer): Promise<Turn> => {
  const times: number[] = []
  for (let nth = 0; nth < 40; nth += 1) {
    const began = performance.now()
    await write(peer)
    times.push(performance.now() - began)
  }
  const before = mainThreadNanoseconds(peer.pid)
  const writes = 320
  const writer = async (): Promise<void> => {
    for (let nth = 0; nth < writes / 8; nth += 1) await write(peer)
  }
  await Promise.all(Array.from({ length: 8 }, writer))
  const micros = (mainThreadNanoseconds(peer.pid) - before) / 1000 / writes
  return { aloneMs: median(times), micros }
}

const print = (title: string, turns: readonly (readonly [Turn, Turn])[], other: string): void => {
  for (const [name, of, unit] of [
    ['alone, until its response', ({ aloneMs }: Turn) => aloneMs, 'ms'],
    ['among eight, processor time', ({ micros }: Turn) => micros / 1000, 'ms'],
  ] as const) {
    const ratios = turns.map(([mine, theirs]) => of(mine) / of(theirs))
    const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)]
    const times = [0, 1].map((at) => median(turns.map((turn) => of(turn[at === 0 ? 0 : 1]))).toFixed(2))
    console.log(
      `${title}, ${name}: ${times[0]} ${unit}, ${other} ${times[1]} ${unit}: ${median(ratios).toFixed(2)} (quartiles ${low.toFixed(2)} and ${high.toFixed(2)} of ${ratios.length} pairs)`,
    )
  }
}

/**
 * What a write costs where a healthy receiver has to confirm its purge: beside the same write without `downstream`, beside a bare
 * request to the receiver, and beside another build (the folder of its main.js).
 */
export async function benchDownstreamWrites(against: string | undefined, pairs = 12): Promise<void> {
  const receiver = await startReceiver()
  const world = await startWorld()
  const running: RunningPeer[] = []
  const downstream = {
    tags: 'Surrogate-Key',
    // A write waits for `settle`, whatever the receiver does.
    settle: '0ms',
    receivers: [{ type: 'webhook', url: receiver.url, secret: 'secret of the receiver' }],
  }
  const start = async (peer: typeof trellis, settings: object): Promise<RunningPeer> => {
    const started = await startPeer(peer, {
      originPort: world.originPort,
      answers: [],
      pin: world.serverPin,
      settings: [{ of: 'site', tree: settings }],
      over: undefined,
    })
    running.push(started)
    return started
  }
  const warmUp = async (): Promise<void> => {
    for (const one of running) for (let nth = 0; nth < 6; nth += 1) await turnOf(one)
  }
  try {
    const purging = await start(trellis, { downstream })
    const without = await start(plain, {})
    await caughtUp(purging)
    if (against !== undefined) {
      const [there, thereWithout] = [
        await start(chooseOther(against), { downstream }),
        await start(chooseOther(against), {}),
      ]
      await caughtUp(there)
      await warmUp()
      print('a write with a receiver', await inTurns(purging, there, pairs, turnOf), 'there')
      print('a write without one', await inTurns(without, thereWithout, pairs, turnOf), 'there')
    } else await warmUp()
    print('a write with a receiver', await inTurns(purging, without, pairs, turnOf), 'without one')
    const trips: number[] = []
    for (let nth = 0; nth < 400; nth += 1) {
      const began = performance.now()
      await post(receiver.url)
      trips.push(performance.now() - began)
    }
    console.log(`a bare request to the receiver: ${median(trips).toFixed(2)} ms`)
  } finally {
    await Promise.all([...running.map((peer) => peer.stop()), world.origin.stop(0), dispatcher.close()])
    receiver.close()
  }
}
