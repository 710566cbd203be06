import { Agent, type RequestOptions, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHttpServer } from '../../support/http-server.ts'

/** What clients do to make a gateway hold memory. Each attack stops when `goesOn` says so, and leaves nothing open. */
export type Attack = {
  readonly name: string
  /** Bound on resident memory where it is not the usual one: large buffers come and go faster than V8 collects them. */
  readonly maxMebibytes?: number
  run(target: AttackedGateway): Promise<void>
}

export type AttackedGateway = {
  /** Origin of the public side. */
  readonly origin: string
  readonly goesOn: () => boolean
}

const large = Buffer.from(JSON.stringify('x'.repeat(2_499_998)))
const json = { 'Content-Type': 'application/json' }
const stored = { ...json, 'Cache-Control': 'max-age=600' }

const tags = (seed: string): string =>
  Array.from({ length: 128 }, (_, i) => `${seed}-${i}`.padEnd(60, 't')).join(' ')

const longHeaders = { maxHeaderSize: 65_536 }

/** The upstream of all attacks: sizes, tags and Vary as the target says. */
export const startAttackedUpstream = () =>
  startHttpServer((incoming, outgoing) => {
    const target = incoming.url ?? ''
    incoming.resume()
    incoming.on('end', () => {
      if (target.includes('vary')) outgoing.writeHead(200, { ...stored, Vary: 'Accept-Language' }).end('{}')
      else if (target.includes('tags'))
        outgoing.writeHead(200, { ...stored, 'Surrogate-Key': tags(target) }).end('{}')
      else if (target.includes('chunked')) outgoing.writeHead(200, stored).end(large)
      else if (target.includes('large') || target.includes('posts/'))
        outgoing.writeHead(200, { ...stored, 'Content-Length': large.length }).end(large)
      else outgoing.writeHead(200, stored).end('{}')
    })
    outgoing.on('error', () => {})
  }, longHeaders)

/** Settings of a gateway for these attacks; paths below are under these mounts. */
export const attackedServices = (upstream: string): Readonly<Record<string, unknown>> => ({
  open: {
    contract: 'open',
    mount: '/open',
    upstream: { targets: [upstream] },
    cache: { profile: 'rfc-shared-cache' },
  },
  site: {
    contract: 'site',
    mount: '/index.php/site-json',
    discovery: { source: 'static', identity: { name: 'Attacked' } },
    upstream: { targets: [upstream], basePath: '/index.php/wp-json' },
    cache: { rules: [{ match: 'GET /site/v2/**', ttl: '10m' }] },
    batch: { split: 'item' },
  },
})

const responded = (options: RequestOptions, origin: string): Promise<void> =>
  new Promise((resolve) => {
    const sent = request(origin, options, (response) => {
      response.resume()
      response.on('close', resolve)
    })
    sent.on('error', () => resolve())
    sent.end()
  })

/** One request after the other on each of some connections. */
const flood = async (
  { origin, goesOn }: AttackedGateway,
  requestOf: (at: number) => RequestOptions,
): Promise<void> => {
  const agent = new Agent({ keepAlive: true })
  let at = 0
  const line = async (): Promise<void> => {
    while (goesOn()) {
      at += 1
      await responded({ agent, ...requestOf(at) }, origin)
    }
  }
  await Promise.all(Array.from({ length: 16 }, line))
  agent.destroy()
}

/** Opens a connection, sends the bytes and reads nothing. */
const unread = async (origin: string, bytes: string | Buffer, from = '127.0.0.1'): Promise<Socket> => {
  const { hostname, port } = new URL(origin)
  const socket = connect({ host: hostname, port: Number(port), localAddress: from })
  socket.on('error', () => {})
  socket.pause()
  socket.write(bytes)
  await sleep(2)
  return socket
}

/** Holds connections that read nothing for as long as it goes on; those that the gateway ends are opened again. */
const bufferUnread = async (
  { origin, goesOn }: AttackedGateway,
  count: number,
  bytesOf: (at: number) => string | Buffer | Promise<string | Buffer>,
): Promise<void> => {
  const sockets: Socket[] = []
  let at = 0
  while (goesOn() && at < count) {
    at += 1
    // A request for each of several addresses, as from several clients.
    sockets.push(await unread(origin, await bytesOf(at), `127.0.0.${2 + (at % 4)}`))
  }
  while (goesOn()) await sleep(50)
  for (const socket of sockets) socket.destroy()
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

const post = (path: string, content: string, declared = content.length): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${declared}\r\n\r\n${content}`

const long = (at: number, length: number): string => `${at}-`.padEnd(length, 'l')

const megabyte = 1_048_576

const batchOfReads = (at: number): string =>
  JSON.stringify({
    requests: Array.from({ length: 25 }, (_, i) => ({
      method: 'GET',
      path: `/site/v2/posts/${at * 25 + i}`,
    })),
  })

export const memoryAttacks: readonly Attack[] = [
  {
    name: '14 KB in a field that responses vary by, 16 variants of each target',
    run: (target) =>
      flood(target, (at) => ({
        path: `/open/vary/${Math.floor(at / 16)}`,
        headers: { 'Accept-Language': long(at, 14_000) },
      })),
  },
  {
    name: '128 tags for each stored response',
    run: (target) => flood(target, (at) => ({ path: `/open/tags/${at}` })),
  },
  {
    name: 'stored responses of two bytes under short targets',
    run: (target) => flood(target, (at) => ({ path: `/open/small/${at}` })),
  },
  {
    name: 'targets of 8 KB that are written to',
    run: (target) => flood(target, (at) => ({ method: 'DELETE', path: `/open/${long(at, 8_000)}` })),
  },
  {
    name: '400 request bodies of 1 MiB that never end',
    run: (target) =>
      bufferUnread(target, 400, (at) =>
        post('/index.php/site-json/site/v2/posts', `{"title":"${long(at, megabyte - 100)}`, megabyte),
      ),
  },
  {
    name: '32 batches of 25 reads of 2.5 MB that no client takes',
    run: (target) =>
      bufferUnread(target, 32, (at) => post('/index.php/site-json/batch/v1', batchOfReads(at))),
  },
  {
    name: '100 misses of 2.5 MB, each another target, that no client takes',
    maxMebibytes: 400,
    run: (target) => bufferUnread(target, 100, (at) => get(`/open/large/${at}`)),
  },
  {
    name: '100 misses of 2.5 MB without a length that no client takes',
    maxMebibytes: 400,
    run: (target) => bufferUnread(target, 100, (at) => get(`/open/chunked/${at}`)),
  },
  {
    name: '200 stored responses of 2.5 MB, evicted while no client takes them',
    maxMebibytes: 400,
    run: (target) =>
      bufferUnread(target, 200, async (at) => {
        await responded({ path: `/open/large/evicted-${at}` }, target.origin)
        return get(`/open/large/evicted-${at}`)
      }),
  },
]
