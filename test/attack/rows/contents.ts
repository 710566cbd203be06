import { once } from 'node:events'
import { connect } from 'node:net'
import { costlyBodies } from '../../support/costly-bodies.ts'
import {
  type AttackRow,
  all,
  blockedFor,
  type Fault,
  fault,
  faultsOf,
  lostHits,
  type Reads,
  riseAbove,
  row,
  type Seen,
  type Tree,
} from '../attack-row.ts'
import { ask, askHttp2, attacker, dial, over, type Question } from '../clients.ts'
import { type Tally, trickleUploads } from '../holding.ts'
import { originOf, type Scene, scriptedOrigin } from '../scene.ts'
import { openService, plantsService, site, siteReads, siteService, withTls } from '../services.ts'

// What clients send as content: text that was lost on the way, contents that are buffered, and uploads that do not end.

type Sent = Question & { readonly title: string; readonly path: string; readonly isHttp2?: boolean }

const content = 'ten octets'
const upload = (title: string, type: string, more: Partial<Sent> = {}): Sent => ({
  title,
  path: '/echo/up',
  method: 'POST',
  content,
  headers: { 'Content-Type': type },
  ...more,
})
const contents: readonly Sent[] = [
  upload('text/plain', 'text/plain'),
  upload('text/plain in chunks', 'text/plain', { isChunked: true }),
  upload('text/plain with a charset', 'text/plain; charset=utf-8'),
  upload('text/plain, tab, parameter', 'text/plain\t; a'),
  upload('TEXT/PLAIN by PUT', 'TEXT/PLAIN', { method: 'PUT' }),
  upload('text/plain by PATCH', 'text/plain', { method: 'PATCH' }),
  upload('text/plain by DELETE', 'text/plain', { method: 'DELETE' }),
  upload('text/plain by PROPFIND', 'text/plain', { method: 'PROPFIND' }),
  upload('a type of separators', ';;;'),
  upload('application/json', 'application/json', { content: '{"a":"b"}' }),
  upload('application/json that is none', 'application/json'),
  upload('a form of several parts', 'multipart/form-data; boundary=x'),
  upload('a file of text for the site', 'text/plain', {
    path: `${site}/site/v2/media`,
    headers: { 'Content-Type': 'text/plain', 'Content-Disposition': 'attachment; filename="a.txt"' },
  }),
  upload('text/plain to plants', 'text/plain', { path: '/plants' }),
]

const echoing = async (scene: Pick<Scene, 'upstream' | 'resources'>): Promise<Tree> => {
  const origin = await scriptedOrigin(scene)
  return {
    services: {
      open: openService(scene.upstream),
      echo: { contract: 'open', mount: '/echo', upstream: { targets: [origin.origin] } },
      site: siteService(origin.origin, { unlistedRoutes: 'pass' }),
      plants: plantsService(origin.origin),
    },
  }
}

type Lost = readonly string[]

/** What arrived is something else than the content. */
const lostContents = async (scene: Scene, isHttp2: boolean): Promise<Lost> => {
  const lost: string[] = []
  const origin = originOf(scene)
  for (const sent of contents) {
    origin.received.length = 0
    const response = await (isHttp2 && !sent.isChunked
      ? askHttp2(scene, sent.path, sent)
      : ask(scene.origin, sent.path, sent))
    const arrived = origin.received[0]?.content.toString('latin1')
    // An open service takes all types; the others refuse what they do not take.
    const mayRefuse = !sent.path.startsWith('/echo')
    const isRefused = mayRefuse && arrived === undefined && response.status >= 400 && response.status < 500
    if (!isRefused && arrived !== sent.content) {
      lost.push(`${sent.title}: answered ${response.status}, the upstream got ${JSON.stringify(arrived)}`)
    }
  }
  return lost
}

const largeBody = 64 * 1024 * 1024 - 1
const piece = Buffer.alloc(256 * 1024, 'x')

/** Sends all but the last octet of a content, as fast as it is taken. */
const sendLarge = async (scene: Scene, signal: AbortSignal): Promise<Tally> => {
  const head = `POST /plants HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: ${largeBody + 1}\r\n\r\n`
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const { hostname: host, port } = new URL(scene.origin)
      const socket = scene.resources.socket(connect({ host, port: Number(port), localAddress: attacker }))
      let left = largeBody
      const more = (): void => {
        while (left > 0 && !socket.destroyed) {
          const next = left < piece.length ? piece.subarray(0, left) : piece
          left -= next.length
          if (!socket.write(next)) {
            socket.once('drain', more)
            return
          }
        }
      }
      socket.write(head)
      more()
      socket.on('data', () => {})
      socket.once('close', () => resolve())
      signal.addEventListener('abort', () => socket.destroy(), { once: true })
    })
  await Promise.all(Array.from({ length: 40 }, one))
  return {}
}

type Slow = { readonly tally: Tally; readonly reads: Readonly<Record<string, number>> }

/** Shortened times: an upload may take longer than the exchange with the upstream, as it may by default. */
const shortTimes = {
  limits: { requestTimeout: '3s', headersTimeout: '2s' },
  times: { timeouts: { connect: '1s', headers: '1500ms', idle: '1500ms', total: '1500ms' } },
}

type SlowUpload = {
  /** What is read meanwhile; lists of posts unless given. */
  readonly reads?: Reads
  readonly name: string
  readonly description: string
  readonly path: string
  readonly settings: (upstream: string) => Tree
}

const slowUpload = ({ name, description, path, settings, reads }: SlowUpload): AttackRow =>
  row<Slow>({
    name,
    description,
    reads: reads ?? siteReads,
    settings: ({ upstream }) => ({ limits: shortTimes.limits, services: settings(upstream) }),
    attack: async (scene, signal) => {
      const tally = await trickleUploads(scene, signal, {
        sockets: 1,
        addresses: [attacker],
        path,
        type: 'image/png',
        length: 1_000,
        everyMs: 300,
      })
      return { tally, reads: {} }
    },
    verdict: all(lostHits, ({ found }: Seen<Slow>) =>
      found.tally['504'] === undefined
        ? []
        : [fault(`${found.tally['504']} uploads of a slow client were answered 504`)],
    ),
  })

/** What lies about beside what is held. */
const garbageMiB = 16

const up = { upstream: shortTimes.times }

type UnreadHits = Pick<AttackRow, 'name' | 'description'> & {
  readonly listen?: typeof withTls
  readonly verdict: (seen: Seen<Tally>) => readonly Fault[]
}

const unreadHits = ({ listen, verdict, ...named }: UnreadHits): AttackRow =>
  row<Tally>({
    ...named,
    settings: async ({ upstream }) => ({
      ...(listen === undefined ? {} : { listen: await listen() }),
      services: { open: openService(upstream) },
      cache: { maxEntryBytes: '5MiB' },
    }),
    attack: async (scene) => {
      await ask(scene.origin, '/open/hit/large')
      const sockets = await Promise.all(Array.from({ length: 300 }, () => dial(scene, attacker)))
      const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
      // Connections alone need memory too: they are opened and used before it is measured.
      for (const socket of sockets) socket.write(get('/open/hit/a'))
      await Promise.all(sockets.map((socket) => once(socket, 'data')))
      await scene.memory.begin()
      for (const socket of sockets) {
        socket.pause()
        socket.write(get('/open/hit/large'))
      }
      await over(AbortSignal.timeout(5_000))
      return { asked: sockets.length }
    },
    verdict,
  })

export const contentRows: readonly AttackRow[] = [
  row<Lost>({
    name: 'lost-text',
    description:
      'Contents of all types, text/plain in several spellings among them, arrive as they were sent.',
    settings: echoing,
    attack: (scene) => lostContents(scene, false),
    verdict: ({ found }) => faultsOf(found),
  }),
  row<Lost>({
    name: 'lost-text-http2',
    description: 'The same over HTTP/2.',
    settings: async (scene) => ({ ...(await echoing(scene)), listen: await withTls() }),
    attack: (scene) => lostContents(scene, true),
    verdict: ({ found }) => faultsOf(found),
  }),
  row<Lost>({
    name: 'lost-text-workers',
    description: 'The same with two workers.',
    settings: async (scene) => ({ ...(await echoing(scene)), workers: 2 }),
    attack: (scene) => lostContents(scene, false),
    verdict: ({ found }) => faultsOf(found),
  }),
  row<Tally>({
    name: 'large-contents',
    description: '40 connections send 64 MiB less one byte of text to POST /plants, which takes 1 MiB.',
    settings: ({ upstream }) => ({
      services: { open: openService(upstream), plants: plantsService(upstream) },
    }),
    attack: sendLarge,
    verdict: all(riseAbove(160)),
  }),
  row<readonly string[]>({
    name: 'costly-contents',
    description:
      'Contents of 1 MiB, each made of what is slow to read, hold the event loop for less than 100 ms.',
    settings: ({ upstream }) => ({ services: { site: siteService(upstream) } }),
    reads: siteReads,
    attack: async ({ origin }, signal) => {
      const found: string[] = []
      for (const [title, type, made, path = '/site/v2/posts'] of costlyBodies) {
        if (signal.aborted) break
        const content = made(1 << 20, origin)
        const headers = { 'Content-Type': type }
        const request = { method: 'POST', headers, content, from: attacker, timeoutMs: 20_000 }
        const { status } = await ask(origin, `${site}${path}`, request)
        if (status === 0) found.push(`${title}: no response`)
      }
      return found
    },
    verdict: all(blockedFor(100), ({ found }: Seen<readonly string[]>) => faultsOf(found)),
  }),
  row<{ readonly status: number; readonly ms: number }[]>({
    name: 'declared-length',
    description: 'A content that is declared larger than is taken is refused before it is sent.',
    settings: ({ upstream }) => ({
      services: { open: openService(upstream), plants: plantsService(upstream) },
    }),
    attack: async ({ origin }) => {
      const responses: { status: number; ms: number }[] = []
      for (const type of ['text/plain', 'application/json', 'image/png', ';;;']) {
        const headers = { 'Content-Type': type, 'Content-Length': '67000000', Connection: 'close' }
        const { status, ms } = await ask(origin, '/plants', {
          method: 'POST',
          headers,
          isChunked: true,
          content: 'abc',
          timeoutMs: 2_500,
        })
        responses.push({ status, ms })
      }
      return responses
    },
    verdict: ({ found }) =>
      found.flatMap(({ status, ms }, at) =>
        status >= 400 && status < 500
          ? []
          : [fault(`type ${at + 1} of 4: status ${status} after ${Math.round(ms)} ms`)],
      ),
  }),
  slowUpload({
    name: 'slow-upload-unlisted',
    description: 'One slow upload to an unlisted route of a site leaves its stored responses alone.',
    path: `${site}/custom/v1/up`,
    settings: (upstream) => ({ site: siteService(upstream, { ...up, unlistedRoutes: 'pass' }) }),
  }),
  slowUpload({
    name: 'slow-upload-sharing',
    description:
      'One slow upload to an open service with the same target leaves the stored responses of the site alone.',
    path: '/open/up',
    settings: (upstream) => ({ site: siteService(upstream, up), open: openService(upstream, up) }),
  }),
  slowUpload({
    name: 'slow-upload-media',
    description: 'One slow upload of a file leaves the stored responses of the site alone.',
    path: `${site}/site/v2/media`,
    reads: { ...siteReads, hit: `${site}/site/v2/media` },
    settings: (upstream) => ({ site: siteService(upstream, up) }),
  }),
  unreadHits({
    name: 'unread-hits',
    description: '300 clients do not read a stored response of 4 MB.',
    verdict: () => [],
  }),
  unreadHits({
    name: 'unread-hits-tls',
    description: '300 TLS clients do not read a stored response of 4 MB: at most 150 KiB for each.',
    listen: withTls,
    verdict: all(riseAbove(Math.round((300 * 150) / 1024) + garbageMiB)),
  }),
]
