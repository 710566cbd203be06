import { setTimeout as sleep } from 'node:timers/promises'
import { pem } from '../../support/certificates.ts'
import {
  acknowledged,
  endHeaders,
  endStream,
  field,
  frame,
  frames,
  numbers,
  ok,
  type Peer,
  type React,
  startPeer,
  wholeAnswer,
} from '../../support/http2-peer.ts'
import { type AttackRow, all, faultsOf, riseAbove, row, type Seen, slowMisses } from '../attack-row.ts'
import { ask } from '../clients.ts'
import type { Resources, Scene } from '../scene.ts'
import { openService } from '../services.ts'

// A hostile upstream that speaks HTTP/2. The honest reader asks another one: it must not notice.

const peers = new WeakMap<Resources, Peer>()

type Hostile = {
  readonly name: string
  readonly description: string
  readonly isShort?: boolean
  readonly react: React
  readonly settings?: Buffer
  /** Uploads of this length instead of GETs. */
  readonly uploadBytes?: number
  /** Contents that a client may get with 200. */
  readonly mayGet?: readonly string[]
}

const start = (socket: Parameters<React>[0], stream: number, more: Buffer = Buffer.alloc(0)): void => {
  socket.write(frame(frames.headers, endHeaders, stream, Buffer.concat([ok, more])))
}
const data = (text: string): Buffer => Buffer.from(text)

/** The initial window is setting 4 (RFC 9113 §6.5.2). */
const windowOfNothing = Buffer.concat([Buffer.from([0, 4]), numbers(0)])

const askMany = async (
  scene: Scene,
  signal: AbortSignal,
  { uploadBytes, mayGet = [] }: Hostile,
): Promise<readonly string[]> => {
  const found: string[] = []
  const content = uploadBytes === undefined ? undefined : Buffer.alloc(uploadBytes, 'u')
  let number = 0
  const one = async (): Promise<void> => {
    while (!signal.aborted) {
      // What the upstream does with each is the attack, not how many there are.
      await sleep(100)
      number += 1
      const path = `/hostile/${number % 50}`
      const { status, text } = await ask(
        scene.origin,
        path,
        content === undefined ? {} : { method: 'POST', content },
      )
      const isRight = status >= 500 || status === 0 || (status === 200 && mayGet.includes(text))
      if (!isRight && found.length < 5) found.push(`answered ${status} ${JSON.stringify(text.slice(0, 60))}`)
    }
  }
  await Promise.all(Array.from({ length: content === undefined ? 8 : 30 }, one))
  return found
}

/** An upstream that behaves again is used again. */
const recovers = async (scene: Scene): Promise<readonly string[]> => {
  const peer = peers.get(scene.resources)
  if (peer === undefined) return ['there is no peer']
  peer.react = wholeAnswer
  for (let tries = 0; tries < 40; tries += 1) {
    const { status, text } = await ask(scene.origin, `/hostile/after-${tries}`)
    if (status === 200 && text === 'ok') return []
    await sleep(250)
  }
  return ['the upstream behaves again and is not used again for ten seconds']
}

const hostile = (attack: Hostile): AttackRow =>
  row<readonly string[]>({
    name: `upstream-${attack.name}`,
    description: attack.description,
    ...(attack.isShort === true ? { isShort: true } : {}),
    settings: async ({ upstream, resources }) => {
      const peer = await startPeer((socket) => resources.socket(socket), attack.settings)
      resources.add(peer.close)
      peer.react = attack.react
      peers.set(resources, peer)
      return {
        services: {
          open: openService(upstream),
          hostile: {
            contract: 'open',
            mount: '/hostile',
            upstream: {
              targets: [peer.origin],
              http2: true,
              tls: { ca: pem('ca.pem') },
              timeouts: { connect: '1s', headers: '1s', idle: '1s', total: '2s' },
              breaker: { minRequests: 1_000_000 },
            },
            cache: { rules: [{ match: 'GET /**', ttl: '200ms' }] },
          },
        },
      }
    },
    attack: async (scene, signal) => {
      const found = await askMany(scene, signal, attack)
      // What was stored in good times must not hide what is stored in bad ones.
      return [...found, ...(attack.settings === undefined ? await recovers(scene) : [])]
    },
    verdict: all(slowMisses, riseAbove(250), ({ found }: Seen<readonly string[]>) => faultsOf(found)),
  })

const attacks: readonly Hostile[] = [
  {
    name: 'goes-away',
    description: 'The upstream says GOAWAY in the middle of an answer and leaves.',
    react: (socket, stream) => {
      start(socket, stream)
      socket.write(frame(frames.data, 0, stream, data('a part')))
      socket.write(frame(frames.goAway, 0, 0, numbers(stream, 2)))
      setTimeout(() => socket.destroy(), 20)
    },
  },
  {
    name: 'goes-away-politely',
    description: 'The upstream says GOAWAY without an error for each request and never answers.',
    react: (socket) => void socket.write(frame(frames.goAway, 0, 0, numbers(0, 0))),
  },
  {
    name: 'resets',
    isShort: true,
    description: 'The upstream resets each stream a hundred times.',
    react: (socket, stream) => {
      const one = frame(frames.reset, 0, stream, numbers(8))
      socket.write(Buffer.concat(Array.from({ length: 100 }, () => one)))
    },
  },
  {
    name: 'resets-part',
    description: 'The upstream resets each stream in the middle of its answer.',
    react: (socket, stream) => {
      start(socket, stream)
      socket.write(frame(frames.data, 0, stream, data('a part')))
      socket.write(frame(frames.reset, 0, stream, numbers(0)))
    },
  },
  {
    name: 'no-window',
    description: 'The upstream opens no window for uploads of 8 MB, for ever.',
    settings: windowOfNothing,
    uploadBytes: 8_000_000,
    react: () => {},
  },
  {
    name: 'large-fields',
    description: 'The fields of each answer have a megabyte in CONTINUATION frames.',
    react: (socket, stream) => {
      socket.write(frame(frames.headers, 0, stream, ok))
      const some = Buffer.concat(Array.from({ length: 100 }, (_, at) => field(`x-${at}`, 'v'.repeat(120))))
      for (let at = 0; at < 80; at += 1) socket.write(frame(frames.continuation, 0, stream, some))
      socket.write(frame(frames.continuation, endHeaders, stream))
      socket.write(frame(frames.data, endStream, stream, data('ok')))
    },
  },
  {
    name: 'fields-without-end',
    description: 'The fields of each answer never end.',
    react: (socket, stream) => {
      socket.write(frame(frames.headers, 0, stream, ok))
      const timer = setInterval(() => {
        if (socket.destroyed) clearInterval(timer)
        else socket.write(frame(frames.continuation, 0, stream, field('x', 'v'.repeat(120))))
      }, 5)
    },
  },
  {
    name: 'trailers',
    description: 'Trailers claim a length, a credential and that nothing may be stored.',
    mayGet: ['ok'],
    react: (socket, stream) => {
      start(socket, stream)
      socket.write(frame(frames.data, 0, stream, data('ok')))
      const fields = [
        field('content-length', '999'),
        field('set-cookie', 'a=b'),
        field('cache-control', 'no-store'),
      ]
      socket.write(frame(frames.headers, endHeaders | endStream, stream, Buffer.concat(fields)))
    },
  },
  {
    name: 'data-after-end',
    description: 'More content comes after the end of each answer.',
    mayGet: ['ok'],
    react: (socket, stream) => {
      wholeAnswer(socket, stream)
      socket.write(frame(frames.data, endStream, stream, data('more')))
    },
  },
  {
    name: 'wrong-length',
    description: 'Content-Length says more than comes, or less.',
    react: (socket, stream) => {
      start(socket, stream, field('content-length', stream % 4 === 1 ? '1' : '99'))
      socket.write(frame(frames.data, endStream, stream, data('ok')))
    },
  },
  {
    name: 'two-answers',
    description: 'A second head comes within each answer.',
    react: (socket, stream) => {
      start(socket, stream)
      socket.write(frame(frames.data, 0, stream, data('ok')))
      start(socket, stream)
      socket.write(frame(frames.data, endStream, stream, data('more')))
    },
  },
  {
    name: 'pushes',
    description: 'The upstream pushes answers that were not asked for.',
    react: (socket, stream) => {
      socket.write(
        frame(frames.push, endHeaders, stream, Buffer.concat([numbers(2), Buffer.from([0x82, 0x87, 0x84])])),
      )
      wholeAnswer(socket, stream)
    },
    mayGet: ['ok'],
  },
  {
    name: 'pings',
    description: 'The upstream sends 2,000 PING and SETTINGS frames with each answer.',
    mayGet: ['ok'],
    react: (socket, stream) => {
      const pair = Buffer.concat([
        frame(frames.ping, 0, 0, numbers(1, 2)),
        frame(frames.settings, 0, 0),
        frame(frames.ping, acknowledged, 0, numbers(1, 2)),
      ])
      socket.write(Buffer.concat(Array.from({ length: 1_000 }, () => pair)))
      wholeAnswer(socket, stream)
    },
  },
  {
    name: 'empty-frames',
    description: 'Each answer has 10,000 frames without content and no end.',
    react: (socket, stream) => {
      start(socket, stream)
      const one = frame(frames.data, 0, stream)
      socket.write(Buffer.concat(Array.from({ length: 10_000 }, () => one)))
    },
  },
  {
    name: 'interim-storm',
    description: 'Each answer begins with 1,000 interim ones.',
    mayGet: ['ok'],
    react: (socket, stream) => {
      const interim = frame(frames.headers, endHeaders, stream, field(':status', '103'))
      socket.write(Buffer.concat(Array.from({ length: 1_000 }, () => interim)))
      wholeAnswer(socket, stream)
    },
  },
]

export const upstreamHttp2Rows: readonly AttackRow[] = attacks.map(hostile)
