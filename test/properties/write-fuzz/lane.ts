import { pause } from '../../support/origin.ts'
import type { Random } from '../../support/random.ts'
import type { Client } from './client.ts'
import { type ServiceName, services, type WritePlan, writePlanOf } from './plan.ts'
import type { FuzzedUpstream } from './upstream.ts'

export type Tally = {
  writes: number
  reads: number
  hits: number
  /** Writes by how far they got: their clients saw the whole response, or not. */
  whole: number
  broken: number
  events: number
  /** Reads that were older than what was known. */
  readonly older: string[]
}

export type LaneOptions = {
  readonly number: number
  readonly upstream: FuzzedUpstream
  /** One for each process or instance that is asked. */
  readonly clients: readonly Client[]
  readonly tally: Tally
  readonly random: Random
  /** This lane kills and drains; the others meet that. */
  readonly hasEvents: boolean
  goesOn(): boolean
  event(kind: NonNullable<WritePlan['event']>): Promise<void>
  /** Until a write of unknown outcome is settled, also in processes that did not see it. `since`: when it began. */
  settled(since: number): Promise<void>
}

/** Beyond all timeouts of the upstream, on a busy machine. */
const maxWriteMs = 15_000

const pathsOf = (lane: number): Readonly<Record<ServiceName, string>> => ({
  open: `/open${lane}/import`,
  site: `/site${lane}/site/v2/posts`,
  openapi: `/api${lane}/things`,
})
const writesTo = (lane: number): Readonly<Record<ServiceName, string>> => ({
  open: `/open${lane}/import`,
  site: `/site${lane}/acme/v1/import`,
  openapi: `/api${lane}/things`,
})

/** Writes one after the other, with reads beside them: each shows at least what was known when it began. */
export const runLane = async (options: LaneOptions): Promise<void> => {
  const { number, upstream, clients, tally, random } = options
  const paths = pathsOf(number)
  /** The version that no read of a service may fall behind. */
  const floors: Record<ServiceName, number> = { open: 0, site: 0, openapi: 0 }
  const history: string[] = []
  const note = (text: string): void => {
    history.push(`${Math.round(performance.now())} ${text}`)
    if (history.length > 40) history.shift()
  }
  const anyClient = (): Client => clients[Math.floor(random() * clients.length)] as Client

  /** A write through the open service is of its own URL there; of the others it drops everything. */
  const learn = (by: ServiceName, version: number, why: string): void => {
    for (const name of services)
      if (name !== 'open' || by === 'open') floors[name] = Math.max(floors[name], version)
    note(`${why}: ${version}, written through ${by}`)
  }

  const read = (name: ServiceName, client: Client): Promise<void> =>
    new Promise((resolve) => {
      const floor = floors[name]
      const begun = Math.round(performance.now())
      let text = ''
      let status = 0
      let cache = ''
      client
        .send(
          { method: 'GET', path: paths[name] },
          {
            head: (code, cacheStatus) => {
              status = code
              cache = cacheStatus
            },
            piece: (piece) => {
              text += piece
            },
            over: (isWhole) => {
              resolve()
              if (!isWhole || status !== 200) return
              tally.reads += 1
              if (cache.includes('hit')) tally.hits += 1
              const version = Number(/"id":(\d+)/.exec(text)?.[1])
              if (version >= floor) return
              const at = clients.indexOf(client)
              tally.older.push(
                `lane ${number}: ${name} by ${at} has ${version}, not ${floor}; begun ${begun}, ${cache}\n${history.join('\n')}`,
              )
            },
          },
        )
        .end()
    })
  const readAll = (): Promise<unknown> =>
    Promise.all(clients.flatMap((client) => services.map((name) => read(name, client))))

  /** Resolves with whether its client saw the whole response. */
  const send = (plan: WritePlan): Promise<boolean> =>
    new Promise((resolve) => {
      let text = ''
      let status = 0
      const stuck = setTimeout(() => {
        tally.older.push(`lane ${number}: no end of the response\n${history.join('\n')}`)
        sending.leave()
      }, maxWriteMs)
      const sending = anyClient().send(
        {
          method: 'POST',
          path: writesTo(number)[plan.service],
          headers: { 'content-type': 'application/json' },
        },
        {
          head: (code) => {
            status = code
          },
          piece: (piece) => {
            text += piece
            const saved = [...text.matchAll(/saved (\d+);/g)].at(-1)?.[1]
            if (saved !== undefined) learn(plan.service, Number(saved), 'a piece says')
            if (plan.leaves === 'in the response') sending.leave()
          },
          over: (isWhole) => {
            clearTimeout(stuck)
            note(`over: ${status}${isWhole ? '' : ', broken off'}`)
            resolve(isWhole && status === 200)
          },
        },
      )
      sending.write('"x')
      if (plan.body === 'whole') sending.write('"')
      else setTimeout(() => sending.write(plan.body === 'partial' ? 'x' : '"'), 2)
      if (plan.body !== 'partial') setTimeout(() => sending.end(), plan.body === 'whole' ? 0 : 4)
      if (plan.leaves === 'before the response' || plan.body === 'partial')
        setTimeout(() => sending.leave(), 5 + plan.leavesAfterMs)
    })

  const write = async (): Promise<void> => {
    const plan = writePlanOf(random, options.hasEvents)
    const since = performance.now()
    const { hasBegun, over } = upstream.expect(plan)
    note(JSON.stringify(plan))
    const sent = send(plan)
    if (plan.event !== undefined) {
      tally.events += 1
      await pause(random() * 40)
      await options.event(plan.event)
    }
    const isWhole = await sent
    tally.writes += 1
    if (isWhole) {
      tally.whole += 1
      await over()
      // The change after its last piece comes before its end.
      learn(plan.service, upstream.version, 'the whole response')
      return
    }
    tally.broken += 1
    if (!hasBegun()) await pause(30)
    // Nothing of it was sent: it changes nothing, and drops nothing.
    if (!hasBegun()) return
    await over()
    await options.settled(since)
    // A read may join a fetch that began before a change of which nobody was told: these end first.
    for (let times = 0; times < 2; times += 1) await readAll()
    learn(plan.service, upstream.version, 'settled')
  }

  const beside = async (): Promise<void> => {
    while (options.goesOn()) {
      await read(services[Math.floor(random() * services.length)] as ServiceName, anyClient())
      await pause(random() * 12)
    }
  }
  const writing = async (): Promise<void> => {
    while (options.goesOn()) {
      await write()
      for (let times = 0; times < 2; times += 1) await readAll()
    }
  }
  await Promise.all([writing(), beside(), beside()])
}
