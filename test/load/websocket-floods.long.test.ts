import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { quantile } from '../../bench/statistics.ts'
import { acceptOf } from '../../src/http/websocket-accept.ts'
import { rowsOf } from '../support/breadth.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { programPid, startProcess } from '../support/processes.ts'
import { processorMsOfHits } from '../support/processor-time.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const handshake = `GET /live/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`
const switching = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`

/** Frames as fast as they are taken, of one side: pongs without content (of a client masked, of a server not), or messages of a server that no client reads. */
const floods = {
  client: { side: 'client', frames: '8a8001020304', reads: true },
  server: { side: 'server', frames: '8a00', reads: true },
  unread: { side: 'server', frames: `827e0400${'78'.repeat(1024)}`, reads: false },
  unreadPings: { side: 'server', frames: '8900', reads: false },
} as const

type Flood = (typeof floods)[keyof typeof floods]

/** The upstream and 64 WebSockets of one client, in a separate process. */
const program = ({ side, frames, reads }: Flood, port: number, upstreamPort: number): string => `
const { connect, createServer } = require('node:net')
const block = Buffer.from(${JSON.stringify(frames)}.repeat(${Math.ceil(60_000 / (frames.length / 2))}), 'hex')
const open = { client: [], server: [] }
const flood = (socket) => {
  const write = () => { if (socket.write(block)) setImmediate(write) }
  socket.on('drain', write)
  write()
}
createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', (head) => {
    socket.write(${JSON.stringify(switching)})
    socket.resume()
    open.server.push(socket)
  })
}).listen(${upstreamPort}, '127.0.0.1', () => {
  for (let i = 0; i < 64; i += 1) {
    const socket = connect({ port: ${port}, host: '127.0.0.1', localAddress: '127.0.0.2' })
    socket.on('error', () => {})
    socket.write(${JSON.stringify(handshake)})
    socket.once('data', (chunk) => {
      if (!chunk.toString('latin1').startsWith('HTTP/1.1 101')) return
      socket.${reads ? 'resume' : 'pause'}()
      if (open.client.push(socket) < 64) return
      console.log('all open')
      open.${side}.forEach(flood)
    })
  }
})
`

const residentBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

test.each(rowsOf(Object.entries(floods), 4))(
  '64 WebSockets with frames as fast as they can be sent (%s) delay the hits of others little, and fill no memory',
  async (_, flood) => {
    const [port, adminPort, upstreamPort] = [await freePort(), await freePort(), await freePort()]
    const origin = await startOrigin((_received, wire) => wire.respond({ content: 'ok' }))
    onTestFinished(() => origin.close())
    const services = {
      live: {
        contract: 'open',
        mount: '/live',
        upstream: { targets: [`http://127.0.0.1:${upstreamPort}`] },
        websockets: true,
      },
      stored: {
        contract: 'open',
        mount: '/stored',
        upstream: { targets: [origin.origin] },
        cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
      },
    }
    const gateway = await startGatewayProcess({ services }, {}, [], [port, adminPort])
    onTestFinished(() => gateway.kill())
    const pid = await programPid(gateway.program)
    const url = `${gateway.origin}/stored/a`
    expect(await (await fetch(url)).text()).toBe('ok')
    const idleMs = await processorMsOfHits(pid, url, { hits: 100, everyMs: 10 })
    const before = residentBytes(pid)

    const attacker = startProcess(process.execPath, ['-e', program(flood, port, upstreamPort)])
    onTestFinished(async () => void (await attacker.stop(0)))
    await expect.poll(() => attacker.output()).toContain('all open')

    const spentMs = await processorMsOfHits(pid, url, { hits: 200, everyMs: 10 })
    expect(quantile(spentMs, 0.99)).toBeLessThan(2 * quantile(idleMs, 0.99) + 100)
    expect(residentBytes(pid) - before).toBeLessThan(200 * 1024 * 1024)
  },
)
