import { once } from 'node:events'
import { createServer } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket, WebSocketServer } from 'ws'
import { type AttackRow, faultsOf, row } from '../attack-row.ts'
import { attackers, dialHttp2, leftOf, pick } from '../clients.ts'
import type { Scene } from '../scene.ts'
import { openService, withTls } from '../services.ts'

// What stays open ends with what allowed it, however much of it there is.

const addresses = attackers(20)
const endedMs = 10_000

/** Echoes messages; any GET is an event stream that never ends. */
const startLive = async ({ resources }: Pick<Scene, 'resources'>): Promise<string> => {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('data: 1\n\n')
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.on('message', (data) => socket.send(data))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  resources.add(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** How it ended, once it has. */
type Held = { end: string | undefined }

const openSocket = async ({ origin, resources }: Scene, from: string): Promise<Held> => {
  const held: Held = { end: undefined }
  const socket = new WebSocket(`${origin.replace('https', 'wss')}/live/a`, {
    localAddress: from,
    rejectUnauthorized: false,
  })
  resources.add(() => socket.terminate())
  socket.on('error', () => {})
  socket.once('close', (code) => {
    held.end = String(code)
  })
  await once(socket, 'open')
  return held
}

const openEvents = async ({ origin, resources }: Scene, from: string): Promise<Held> => {
  const held: Held = { end: undefined }
  const sent = request(`${origin}/live/events`, {
    agent: false,
    localAddress: from,
    rejectUnauthorized: false,
  })
  sent.on('error', () => {})
  resources.add(() => sent.destroy())
  sent.end()
  const [response] = await once(sent, 'response')
  response.on('error', () => {})
  response.once('close', () => {
    held.end = response.complete ? 'complete' : 'cut'
  })
  await once(response, 'data')
  return held
}

const openStreams = async (scene: Scene, from: string, count: number): Promise<readonly Held[]> => {
  const client = await dialHttp2(scene, from)
  const one = async (): Promise<Held> => {
    const held: Held = { end: undefined }
    const stream = client.request({ ':path': '/live/events' })
    stream.on('error', () => {})
    stream.once('close', () => {
      held.end = stream.rstCode === 0 ? 'complete' : 'cut'
    })
    await once(stream, 'data')
    return held
  }
  return Promise.all(Array.from({ length: count }, one))
}

type Ends = Readonly<Record<string, Readonly<Record<string, number>>>>

const endsOf = (held: readonly Held[]): Readonly<Record<string, number>> => {
  const ends: Record<string, number> = {}
  for (const { end = 'open' } of held) ends[end] = (ends[end] ?? 0) + 1
  return ends
}

export const revokedRows: readonly AttackRow[] = [
  row<Ends>({
    name: 'revoked-connections',
    description:
      '200 WebSockets, 200 event streams and as many over HTTP/2 end within seconds of a reload that denies them.',
    settings: async (scene) => ({
      listen: await withTls(),
      services: {
        open: openService(scene.upstream),
        live: {
          contract: 'open',
          mount: '/live',
          websockets: true,
          upstream: { targets: [await startLive(scene)], maxConcurrent: 1_000 },
        },
      },
    }),
    attack: async (scene) => {
      const each = <Value>(count: number, open: (from: string) => Promise<Value>) =>
        Promise.all(Array.from({ length: count }, (_, at) => open(pick(addresses, at))))
      const sockets = await each(200, (from) => openSocket(scene, from))
      const events = await each(200, (from) => openEvents(scene, from))
      const streams = (await each(20, (from) => openStreams(scene, from, 10))).flat()
      const { services } = scene.settings as { services: { live: object } }
      const live = { ...services.live, access: { deny: ['127.0.1.0/24'] } }
      await scene.gateway.reload({ ...scene.settings, services: { ...services, live } })
      const latest = performance.now() + endedMs
      const all = [...sockets, ...events, ...streams]
      while (all.some(({ end }) => end === undefined) && performance.now() < latest) await sleep(50)
      const left = await leftOf(scene, 'trellis_websockets_open')
      return {
        sockets: endsOf(sockets),
        events: endsOf(events),
        streams: endsOf(streams),
        left: { websockets: left },
      }
    },
    verdict: ({ found: { sockets, events, streams, left } }) =>
      faultsOf([
        ...(sockets?.['1008'] === 200 ? [] : [`WebSockets ended so: ${JSON.stringify(sockets)}`]),
        ...(events?.['cut'] === 200 ? [] : [`event streams ended so: ${JSON.stringify(events)}`]),
        ...(streams?.['cut'] === 200 ? [] : [`streams of HTTP/2 ended so: ${JSON.stringify(streams)}`]),
        ...(left?.['websockets'] === 0 ? [] : [`${left?.['websockets']} WebSockets count as open`]),
      ]),
  }),
]
