import { clientPreface, octets, postHead } from '../../support/http2-peer.ts'
import {
  type AttackRow,
  all,
  faultsOf,
  maxResidentMiB,
  type Reads,
  residentAbove,
  row,
  type Tree,
} from '../attack-row.ts'
import { attacker, leftOf } from '../clients.ts'
import { count, keepHolding, type Tally } from '../holding.ts'
import { type Scene, scriptedOrigin } from '../scene.ts'
import { openReads, openService, site, siteReads, siteService, withTls } from '../services.ts'

// Contents in pieces of one octet, on 300 connections or streams of one address: what is kept of each piece must be as small as the piece.

const clients = 300
/** Sent at once, and then one more every so often. */
const atOnce = 1_000
const everyMs = 100
const streamsOfConnection = 100

type Target = { readonly path: string; readonly type: string; readonly reads: Reads }

const targets: Readonly<Record<string, Target>> = {
  open: { path: '/open/up', type: 'application/octet-stream', reads: openReads },
  media: { path: `${site}/site/v2/media`, type: 'image/png', reads: siteReads },
  posts: { path: `${site}/site/v2/posts`, type: 'application/json', reads: siteReads },
}

/** How one connection begins its content, and what it sends as the next piece. */
type Framing = {
  readonly protocol?: 'h2'
  readonly begin: (target: Target) => string | Buffer
  readonly pieces: (count: number) => string | Buffer
}

const head = ({ path, type }: Target, headers: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n${headers}\r\n\r\n`
const inChunks = (chunk: string): Framing => ({
  begin: (target) => head(target, 'Transfer-Encoding: chunked'),
  pieces: (pieces) => chunk.repeat(pieces),
})
const streams = Array.from({ length: streamsOfConnection }, (_, at) => 2 * at + 1)

const framings: Readonly<Record<string, Framing>> = {
  length: {
    begin: (target) => head(target, 'Content-Length: 500000'),
    pieces: (pieces) => ' '.repeat(pieces),
  },
  chunks: inChunks('1\r\n \r\n'),
  extensions: inChunks('1;a=b\r\n \r\n'),
  frames: {
    protocol: 'h2',
    begin: ({ path, type }) =>
      Buffer.concat([clientPreface, ...streams.map((stream) => postHead(stream, path, type))]),
    pieces: (pieces) => Buffer.concat(streams.map((stream) => octets(stream, pieces))),
  },
}

const settings = async ({ upstream }: Pick<Scene, 'upstream'>, isTls: boolean): Promise<Tree> => ({
  ...(isTls ? { listen: await withTls() } : {}),
  cache: { maxBytes: '64MiB' },
  services: { open: openService(upstream), site: siteService(upstream) },
})

type Found = { readonly tally: Tally; readonly bufferedBytes: number }

const nothingLeft = ({ found }: { readonly found: Found }) =>
  faultsOf(found.bufferedBytes === 0 ? [] : [`${found.bufferedBytes} octets of bodies are still counted`])
const verdict = all<Found>(residentAbove(maxResidentMiB), nothingLeft)

const sendOctets = async (
  scene: Scene,
  signal: AbortSignal,
  target: Target,
  { protocol, begin, pieces }: Framing,
): Promise<Found> => {
  const tally: Tally = {}
  await keepHolding(scene, signal, tally, {
    sockets: protocol === 'h2' ? clients / streamsOfConnection : clients,
    addresses: [attacker],
    ...(protocol === undefined ? {} : { protocol }),
    hold: (socket) => {
      socket.write(begin(target), 'latin1')
      socket.write(pieces(atOnce), 'latin1')
      socket.on('data', (chunk) => {
        const status = /^HTTP\/1\.1 (\d{3})/.exec(chunk.toString('latin1'))?.[1]
        if (status !== undefined) count(tally, status)
      })
      const timer = setInterval(() => socket.writable && socket.write(pieces(1), 'latin1'), everyMs)
      return () => clearInterval(timer)
    },
  })
  return { tally, bufferedBytes: await leftOf(scene, 'trellis_buffered_bytes') }
}

const requestRows = Object.entries(targets).flatMap(([to, target]) =>
  Object.entries(framings).map(([by, framing]) =>
    row<Found>({
      name: `octets-${to}-${by}`,
      description: `300 bodies in pieces of one octet: ${target.path}, ${by}.`,
      reads: target.reads,
      settings: (scene) => settings(scene, framing.protocol === 'h2'),
      attack: (scene, signal) => sendOctets(scene, signal, target, framing),
      verdict,
    }),
  ),
)

/** A response in chunks of one octet: many at once, and then one now and then. */
const octetResponses = async (scene: Pick<Scene, 'upstream' | 'resources'>): Promise<Tree> => {
  const chunk = '1\r\na\r\n'
  const origin = await scriptedOrigin(scene, (_, { socket, write }) => {
    write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n')
    write(chunk.repeat(atOnce))
    const timer = setInterval(() => write(chunk), everyMs / 4)
    socket.once('close', () => clearInterval(timer))
  })
  const octetService = (mount: string, more: Tree): Tree => ({
    contract: 'open',
    mount,
    upstream: { targets: [origin.origin], maxConcurrent: clients, clientShare: 1 },
    ...more,
  })
  return {
    cache: { maxBytes: '64MiB' },
    services: {
      open: openService(scene.upstream),
      passed: octetService('/passed', {}),
      stored: octetService('/stored', { cache: { rules: [{ match: 'GET /**', ttl: '1m' }] } }),
    },
  }
}

const responseRow = (name: string, description: string, path: (at: number) => string, reads: boolean) =>
  row<Found>({
    name,
    description,
    settings: octetResponses,
    attack: async (scene, signal) => {
      const tally: Tally = {}
      let at = 0
      await keepHolding(scene, signal, tally, {
        sockets: clients,
        addresses: [attacker],
        hold: (socket) => {
          at += 1
          if (reads) socket.resume()
          else socket.pause()
          socket.write(`GET ${path(at)} HTTP/1.1\r\nHost: a\r\n\r\n`)
          return () => {}
        },
      })
      return { tally, bufferedBytes: await leftOf(scene, 'trellis_buffered_bytes') }
    },
    verdict,
  })

export const octetRows: readonly AttackRow[] = [
  ...requestRows,
  responseRow(
    'octets-unread',
    '300 responses in pieces of one octet that no client reads.',
    (at) => `/passed/${at}`,
    false,
  ),
  responseRow(
    'octets-stored',
    '300 responses in pieces of one octet that are to be stored.',
    (at) => `/stored/${at}`,
    true,
  ),
  responseRow(
    'octets-followed',
    '300 readers of one response in pieces of one octet.',
    () => '/stored/one',
    true,
  ),
]
