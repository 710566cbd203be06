import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { itemResponse } from './batch-answer.ts'

/** How long it takes: a part for each request, whatever is in it, and a part for each item. */
export type Pace = {
  readonly workers: number
  readonly startUpMs: number
  readonly itemMs: number
  /** Without it, it answers as WordPress does where there is none. */
  readonly batchRoute: boolean
}

/** An upstream that takes its time and little processor. */
export type SlowUpstream = {
  readonly origin: string
  /** Most requests that were there at one moment. */
  maxAtOnce(): number
  /** Begins to count anew. */
  forget(): void
  close(): Promise<void>
}

type Item = { readonly path: string; readonly body?: Readonly<Record<string, unknown>> }

const batchRoute = '/batch/v1'

/** What stands in front of `/wp/v2/…` and of the batch route. */
const rootOf = (url: string): string => url.slice(0, Math.max(0, url.search(/\/(?:wp\/v2|batch\/v1)\b/)))

const itemHeaders = '{"Allow":"GET, POST, PUT, PATCH, DELETE"}'

/** Starts it on a free port. */
export async function startSlowUpstream(options: Pace): Promise<SlowUpstream> {
  let busy = 0
  let present = 0
  let max = 0
  const waiting: (() => void)[] = []
  const work = async (items: number): Promise<void> => {
    if (busy < options.workers) busy += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    await new Promise((resolve) => setTimeout(resolve, options.startUpMs + items * options.itemMs))
    const next = waiting.shift()
    if (next === undefined) busy -= 1
    else next()
  }
  /** What it answers is what a WordPress answers, in size and shape. */
  const reply = async (
    host: string,
    url: string,
    content: string,
  ): Promise<[status: number, text: string]> => {
    const made = ({ path, body = {} }: Item): string =>
      itemResponse(`http://${host}`, rootOf(url), path, body)
    if (!url.endsWith(batchRoute)) {
      await work(1)
      const body = content === '' ? {} : (JSON.parse(content) as Readonly<Record<string, unknown>>)
      return [200, made({ path: url, body })]
    }
    if (!options.batchRoute) return [404, '{"code":"rest_no_route","message":"","data":{"status":404}}']
    const { requests } = JSON.parse(content) as { requests: Item[] }
    await work(requests.length)
    const responses = requests.map((item) => `{"body":${made(item)},"status":200,"headers":${itemHeaders}}`)
    return [207, `{"responses":[${responses.join(',')}]}`]
  }
  const server = createServer(async (request, response) => {
    present += 1
    max = Math.max(max, present)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { host = '' } = request.headers
    const [status, content] = await reply(host, request.url ?? '', Buffer.concat(chunks).toString())
    present -= 1
    response.writeHead(status, {
      'Content-Type': 'application/json; charset=UTF-8',
      'Content-Length': Buffer.byteLength(content),
    })
    response.end(content)
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    maxAtOnce: () => max,
    forget: () => {
      max = present
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
