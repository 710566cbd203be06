import { Client } from 'undici'

export type PacedGets = {
  /** How long each hit took, in milliseconds. */
  readonly hits: readonly number[]
  /** Responses that did not come from the cache. */
  readonly others: number
}

/** One GET every few milliseconds on one connection. */
export async function pacedGets(url: string, seconds: number): Promise<PacedGets> {
  const { origin, pathname, search } = new URL(url)
  const client = new Client(origin)
  const hits: number[] = []
  let others = 0
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    const began = performance.now()
    const { body, headers } = await client.request({ path: `${pathname}${search}`, method: 'GET' })
    await body.arrayBuffer()
    if (String(headers['cache-status']).startsWith('trellis; hit')) hits.push(performance.now() - began)
    else others += 1
    await new Promise((resolve) => setTimeout(resolve, 4))
  }
  await client.close()
  return { hits, others }
}
