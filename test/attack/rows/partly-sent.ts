import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AttackRow, all, faultsOf, riseAbove, row, type Seen, type Tree } from '../attack-row.ts'
import { ask, attackers, dialHttp2, leftOf, pick } from '../clients.ts'
import { keepHolding, type Tally } from '../holding.ts'
import type { Scene } from '../scene.ts'
import { openService, withTls } from '../services.ts'

// Writes of which the upstream gets half, and acts on it: how far each got is forgotten when it is over, and nothing older is stored.

const declared = 20_000
const half = 'x'.repeat(declared / 2)
const targets = 16
const heldMs = 200
/** A write that was begun is over for the gateway too after this time, on a machine that is busy. */
const overMs = 3_000

/** Counts a change with the first octets of each body; a GET gives the count. */
class CountingUpstream {
  #count = 0
  readonly #history: (readonly [at: number, count: number])[] = []
  readonly #server = createServer((request, response) => {
    if (request.method === 'GET') this.#show(response)
    else request.once('data', () => this.#change()).on('error', () => {})
    request.resume()
  })

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  get count(): number {
    return this.#count
  }

  /** The count at this time. */
  countAt(at: number): number {
    return this.#history.findLast(([changedAt]) => changedAt <= at)?.[1] ?? 0
  }

  #show(response: ServerResponse): void {
    response.end(String(this.#count))
  }

  #change(): void {
    this.#count += 1
    this.#history.push([performance.now(), this.#count])
  }
}

const upstreams = new WeakMap<object, CountingUpstream>()

const counting = async ({ upstream, resources }: Pick<Scene, 'upstream' | 'resources'>): Promise<Tree> => {
  const changing = new CountingUpstream()
  resources.add(() => changing.close())
  upstreams.set(resources, changing)
  return {
    services: {
      open: openService(upstream),
      state: {
        contract: 'open',
        mount: '/state',
        upstream: {
          targets: [await changing.listen()],
          timeouts: { headers: '2s', idle: '2s', total: '2s' },
        },
        cache: { rules: [{ match: 'GET /**', ttl: '10m' }] },
      },
    },
  }
}

const upstreamOf = ({ resources }: Scene): CountingUpstream => {
  const upstream = upstreams.get(resources)
  if (upstream === undefined) throw new Error('the row has started no upstream')
  return upstream
}

type Found = { readonly faults: readonly string[]; readonly tally: Tally; readonly changes: number }

/** Reads all targets while the attack goes on: nothing that was over for long is missing in what they show. */
const readMeanwhile = async (scene: Scene, signal: AbortSignal): Promise<readonly string[]> => {
  const upstream = upstreamOf(scene)
  const faults: string[] = []
  for (let at = 0; !signal.aborted; at += 1) {
    const least = upstream.countAt(performance.now() - overMs)
    const { status, text } = await ask(scene.origin, `/state/${at % targets}`)
    if (status === 200 && Number(text) < least) faults.push(`a read showed ${text} after ${least}`)
    await sleep(20)
  }
  return faults
}

const afterwards = async (scene: Scene): Promise<readonly string[]> => {
  const faults: string[] = []
  // The upstream shares this process: it may have octets that it has not read.
  await sleep(500)
  for (const name of ['trellis_in_flight_requests', 'trellis_writes_open', 'trellis_buffered_bytes']) {
    const left = await leftOf(scene, name)
    if (left !== 0) faults.push(`${name} is ${left} afterwards`)
  }
  for (let at = 0; at < 2 * targets; at += 1) {
    const { text } = await ask(scene.origin, `/state/${at % targets}`)
    if (Number(text) !== upstreamOf(scene).count)
      faults.push(`/state/${at % targets} is ${text} and not ${upstreamOf(scene).count} afterwards`)
  }
  return faults
}

type Attack = (scene: Scene, signal: AbortSignal, tally: Tally) => Promise<unknown>

const partlySent = (
  named: Pick<AttackRow, 'name' | 'description'>,
  settings: typeof counting,
  attack: Attack,
): AttackRow =>
  row<Found>({
    ...named,
    settings,
    attack: async (scene, signal) => {
      const tally: Tally = {}
      const [faults] = await Promise.all([readMeanwhile(scene, signal), attack(scene, signal, tally)])
      return {
        faults: [...faults, ...(await afterwards(scene))],
        tally,
        changes: upstreamOf(scene).count,
      }
    },
    verdict: all(riseAbove(96), ({ found }: Seen<Found>) =>
      faultsOf(found.changes === 0 ? ['no write reached the upstream'] : found.faults),
    ),
  })

export const partlySentRows: readonly AttackRow[] = [
  partlySent(
    {
      name: 'partly-sent-writes',
      description: '200 clients send half of a body that the upstream acts on, cut it, and begin again.',
    },
    counting,
    (scene, signal, tally) => {
      let begun = 0
      return keepHolding(scene, signal, tally, {
        sockets: 200,
        addresses: attackers(20),
        hold: (socket) => {
          begun += 1
          socket.write(
            `POST /state/${begun % targets} HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${declared}\r\n\r\n${half}`,
          )
          const timer = setTimeout(() => socket.resetAndDestroy(), heldMs)
          return () => clearTimeout(timer)
        },
      })
    },
  ),
  partlySent(
    {
      name: 'partly-sent-streams',
      description: 'The same over HTTP/2: 20 connections reset the streams of half a body.',
    },
    async (scene) => ({ ...(await counting(scene)), listen: await withTls() }),
    async (scene, signal, tally) => {
      let begun = 0
      const one = async (from: string): Promise<void> => {
        const client = await dialHttp2(scene, from)
        while (!signal.aborted && !client.destroyed) {
          begun += 1
          const stream = client.request({
            ':method': 'POST',
            ':path': `/state/${begun % targets}`,
            'content-length': String(declared),
          })
          stream.on('error', () => {}).resume()
          stream.write(half)
          await sleep(heldMs)
          // `close` would end the body first.
          stream.destroy(new Error('gone'))
          tally['reset'] = (tally['reset'] ?? 0) + 1
        }
        client.destroy()
      }
      const keepOn = async (from: string): Promise<void> => {
        while (!signal.aborted) await one(from).catch(() => sleep(100))
      }
      await Promise.all(Array.from({ length: 20 }, (_, at) => keepOn(pick(attackers(20), at))))
    },
  ),
]
