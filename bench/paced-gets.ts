import { Client } from 'undici'

/** One GET every few milliseconds on one connection, and how long each took, in milliseconds. */
export async function pacedGets(url: string, seconds: number): Promise<number[]> {
  const { origin, pathname, search } = new URL(url)
  const client = new Client(origin)
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    const began = performance.now()
    const { body } = await client.request({ path: `${pathname}${search}`, method: 'GET' })
    await body.arrayBuffer()
    times.push(performance.now() - began)
    await new Promise((resolve) => setTimeout(resolve, 4))
  }
  await client.close()
  return times
}
