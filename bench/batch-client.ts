import { Pool } from 'undici'
import { kindOf, type Update } from './batch-updates.ts'
import { median, quantile } from './statistics.ts'

/** The REST root of the benchmark's sites, with the gateway in front and without it. */
export const mount = '/index.php/wp-json'

export type Way = { readonly name: string; run(round: number): Promise<unknown> }

/** A client of one origin that sends the same updates in different ways. */
export type BatchClient = {
  /** The items in a number of concurrent batches. */
  batches(count: number, round: number): Promise<void>
  /** Gives back how many of its items got no response in time. */
  hurriedBatch(round: number): Promise<number>
  singles(round: number): Promise<void>
  close(): Promise<void>
}

type Item = { readonly method: 'PUT'; readonly path: string; readonly body: Readonly<Record<string, string>> }

const updatesOf = (ids: readonly number[], update: Update, round: number): Item[] => {
  const { collection, body } = kindOf(update)
  return ids.map((id) => ({ method: 'PUT', path: `/wp/v2/${collection}/${id}`, body: body(round, id) }))
}

/** The newest items, as many as are updated; creates missing ones where that is possible. */
export async function updatable(
  origin: string,
  options: { readonly authorization: string; readonly update: Update; readonly count: number },
): Promise<readonly number[]> {
  const { collection, create } = kindOf(options.update)
  const headers = { 'content-type': 'application/json', authorization: options.authorization }
  const known = async (): Promise<number[]> => {
    // By number, as not all collections have dates.
    const query = `per_page=${options.count}&orderby=id&order=desc&context=edit&_fields=id`
    const response = await fetch(`${origin}${mount}/wp/v2/${collection}?${query}`, { headers })
    return ((await response.json()) as { id: number }[]).map(({ id }) => id)
  }
  const there = await known()
  for (let number = there.length; create !== undefined && number < options.count; number += 1) {
    const response = await fetch(`${origin}${mount}/wp/v2/${collection}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(create(number)),
    })
    if (response.status !== 201) throw new Error(`${collection}: ${response.status} ${await response.text()}`)
  }
  return create === undefined ? there : known()
}

export function batchClient(
  origin: string,
  options: {
    readonly connections: number
    readonly authorization: string
    /** Of what is updated. */
    readonly ids: readonly number[]
    readonly update: Update
    /** Of the REST routes, where it is not the usual one. */
    readonly root?: string
  },
): BatchClient {
  const { root = mount } = options
  const pool = new Pool(origin, { connections: options.connections })
  const headers = { 'content-type': 'application/json', authorization: options.authorization }
  const ask = async (method: 'POST' | 'PUT', path: string, body: unknown, expected: number) => {
    const response = await pool.request({
      method,
      path: `${root}${path}`,
      headers,
      body: JSON.stringify(body),
    })
    const text = await response.body.text()
    if (response.statusCode !== expected)
      throw new Error(`${path}: ${response.statusCode} ${text.slice(0, 200)}`)
    return text
  }
  const send = (requests: readonly Item[]): Promise<string> => ask('POST', '/batch/v1', { requests }, 207)
  const failedItem = /"status":[45]/
  const sendAll = async (requests: readonly Item[]): Promise<void> => {
    const response = await send(requests)
    const at = response.search(failedItem)
    if (at !== -1)
      throw new Error(`an item of a batch failed: …${response.slice(Math.max(0, at - 200), at + 40)}`)
  }
  const updates = (round: number): Item[] => updatesOf(options.ids, options.update, round)
  return {
    batches: async (count, round) => {
      const items = updates(round)
      const parts = Array.from({ length: count }, (_, part) => items.filter((_, at) => at % count === part))
      await Promise.all(parts.map(sendAll))
    },
    hurriedBatch: async (round) => ((await send(updates(round))).split(failedItem).length - 1) / 2,
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
