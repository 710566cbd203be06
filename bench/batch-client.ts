import { Pool } from 'undici'
import { median, quantile } from './statistics.ts'

/** The REST root of the benchmark's sites, with the gateway in front and without it. */
export const mount = '/index.php/wp-json'

/** What an update sets: a title, of which WordPress keeps a revision; or a switch, of which it keeps none. */
export type Update = 'title' | 'switch'

export type Way = { readonly name: string; run(round: number): Promise<unknown> }

/** A client of one origin that sends the same updates in different ways. */
export type BatchClient = {
  /** The items in so many batches at once. */
  batches(count: number, round: number): Promise<void>
  /** Gives back how many of its items got no answer in time. */
  hurriedBatch(round: number): Promise<number>
  singles(round: number): Promise<void>
  close(): Promise<void>
}

type Item = { readonly method: 'PUT'; readonly path: string; readonly body: Record<string, string> }

const updatesOf = (posts: readonly number[], update: Update, round: number): Item[] =>
  posts.map((id) => ({
    method: 'PUT',
    path: `/wp/v2/posts/${id}`,
    body:
      update === 'title'
        ? { title: `Round ${round}, ${id}` }
        : { ping_status: round % 2 === 0 ? 'open' : 'closed' },
  }))

export function batchClient(
  origin: string,
  options: {
    readonly connections: number
    readonly authorization: string
    readonly posts: readonly number[]
    readonly update: Update
    /** Of the REST routes, where it is not the usual one. */
    readonly root?: string
  },
): BatchClient {
  const { root = mount } = options
  const pool = new Pool(origin, { connections: options.connections })
  const headers = { 'content-type': 'application/json', authorization: options.authorization }
  const ask = async (method: 'POST' | 'PUT', path: string, body: unknown, expected: number) => {
    const answer = await pool.request({
      method,
      path: `${root}${path}`,
      headers,
      body: JSON.stringify(body),
    })
    const text = await answer.body.text()
    if (answer.statusCode !== expected) throw new Error(`${path}: ${answer.statusCode} ${text.slice(0, 200)}`)
    return text
  }
  const send = async (requests: readonly Item[]): Promise<number> =>
    (await ask('POST', '/batch/v1', { requests }, 207)).split(/"status":[45]/).length - 1
  const sendAll = async (requests: readonly Item[]): Promise<void> => {
    if ((await send(requests)) > 0) throw new Error('an item of a batch failed')
  }
  const updates = (round: number): Item[] => updatesOf(options.posts, options.update, round)
  return {
    batches: async (count, round) => {
      const items = updates(round)
      const parts = Array.from({ length: count }, (_, part) => items.filter((_, at) => at % count === part))
      await Promise.all(parts.map(sendAll))
    },
    hurriedBatch: async (round) => (await send(updates(round))) / 2,
    singles: async (round) => {
      await Promise.all(updates(round).map(({ path, body }) => ask('PUT', path, body, 200)))
    },
    close: () => pool.close(),
  }
}

/** All ways once in each round, so that what disturbs the machine disturbs all; their times in milliseconds. */
export async function interleaved(
  ways: readonly Way[],
  rounds: number,
  between: () => Promise<void>,
): Promise<Map<string, number[]>> {
  const times = new Map<string, number[]>(ways.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    await between()
    for (const [at, { name, run }] of ways.entries()) {
      const began = performance.now()
      // Every way writes something new.
      await run(round * ways.length + at)
      times.get(name)?.push(performance.now() - began)
    }
  }
  return times
}

/** Medians, quartiles, and how the measured way compares with each other one, round by round. */
export function comparison(times: ReadonlyMap<string, readonly number[]>, measured: string): string {
  const own = times.get(measured) ?? []
  const lines = [...times].map(([name, all]) => {
    const spread = `${quantile(all, 0.25).toFixed(0)}-${quantile(all, 0.75).toFixed(0)}`
    const figures = `  ${name.padEnd(46)}${median(all).toFixed(0).padStart(6)} ms  ${spread.padStart(9)}`
    if (name === measured) return figures
    const ratios = own.map((ms, round) => ms / (all[round] ?? Number.NaN))
    return `${figures}  ratio ${median(ratios).toFixed(2)} (${quantile(ratios, 0.25).toFixed(2)}-${quantile(ratios, 0.75).toFixed(2)})`
  })
  return lines.join('\n')
}
