import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AttackRow, faultsOf, row } from '../attack-row.ts'
import type { Resources, Scene } from '../scene.ts'
import { openService } from '../services.ts'

// Clients and upstreams that together make a long response end while it waits for its turn, or begin with interim ones.

const forms: readonly ((content: string) => string)[] = [
  (content) => `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${content}`,
  (content) => `HTTP/1.0 200 OK\r\n\r\n${content}`,
  (content) =>
    `HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${content.length.toString(16)}\r\n${content}\r\n0\r\n\r\n`,
  (content) => `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${content.length}\r\n\r\n${content}`,
  (content) => `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${content}`,
  (content) =>
    `HTTP/1.1 103 Early Hints\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${content}`,
]

/** `/slow` after 150 ms; `/big/N` in form N, in pieces, and then the end of the connection. */
const startUpstream = async (resources: Resources): Promise<string> => {
  const server = createServer((socket) => {
    resources.socket(socket)
    socket.on('error', () => {})
    socket.on('data', async (request: Buffer) => {
      const [, path = '', form = '0'] = /^GET [^ ]*\/(slow|big)\/(\d)/.exec(request.toString('latin1')) ?? []
      if (path === 'slow') {
        await sleep(150)
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow')
        return
      }
      const length = 60_000 + Math.floor(Math.random() * 340_000)
      const piece = 1_000 + Math.floor(Math.random() * 64_000)
      for (
        let rest = forms[Number(form)]?.('x'.repeat(length)) ?? '';
        rest !== '';
        rest = rest.slice(piece)
      ) {
        socket.write(rest.slice(0, piece))
        await sleep(2)
      }
      socket.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  resources.add(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Pipelines `/big` behind `/slow`; what is wrong about the responses. */
const pipelined = async (scene: Scene, form: number): Promise<string | undefined> => {
  const { hostname, port } = new URL(scene.origin)
  const socket = connect(Number(port), hostname)
  scene.resources.socket(socket)
  let text = ''
  let failure: string | undefined
  socket.on('error', ({ message }) => {
    failure = message
  })
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  socket.write(
    `GET /ends/slow/0 HTTP/1.1\r\nHost: x\r\n\r\nGET /ends/big/${form} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  await new Promise((resolve) => socket.once('close', resolve))
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
  const finals = statuses.filter((status) => status !== '103').join(' ')
  return failure ?? (finals === '200 200' ? undefined : `form ${form} was answered ${finals}`)
}

export const upstreamEndRows: readonly AttackRow[] = [
  row<readonly string[]>({
    name: 'pipelined-behind-slow',
    description: 'Long responses that end with their connection wait for their turn behind slow ones.',
    settings: async ({ upstream, resources }) => ({
      services: {
        open: openService(upstream),
        ends: {
          contract: 'open',
          mount: '/ends',
          upstream: { targets: [await startUpstream(resources)], basePath: '/' },
        },
      },
    }),
    attack: async (scene, signal) => {
      const found: string[] = []
      const one = async (_: unknown, connection: number): Promise<void> => {
        for (let form = connection % forms.length; !signal.aborted; form = (form + 1) % forms.length) {
          const fault = await pipelined(scene, form)
          if (fault !== undefined && !signal.aborted && found.length < 5) found.push(fault)
        }
      }
      await Promise.all(Array.from({ length: 12 }, one))
      return found
    },
    verdict: ({ found }) => faultsOf(found),
  }),
]
