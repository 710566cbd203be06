import { expect, onTestFinished, test } from 'vitest'
import { quantile } from '../../../bench/statistics.ts'
import { acceptOf } from '../../../src/http/message.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { startOrigin } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'
import { programPid, startProcess } from '../../support/processes.ts'
import { processorMsOfHits } from '../../support/processor-time.ts'

const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const handshake = `GET /live/a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`
const switching = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`

/** Frames without content: of a client masked, of a server not. */
const pongs = { client: '8a8001020304', server: '8a00' }

/** The upstream and 64 WebSockets of one client, of which one side sends frames as fast as they are taken, in a separate process. */
const program = (side: 'client' | 'server', port: number, upstreamPort: number): string => `
const { connect, createServer } = require('node:net')
const block = Buffer.from(${JSON.stringify(pongs[side])}.repeat(10_000), 'hex')
const open = { client: [], server: [] }
const flood = (socket) => {
  const write = () => { if (socket.write(block)) setImmediate(write) }
  socket.on('drain', write)
  write()
}
createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => {
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
      socket.resume()
      if (open.client.push(socket) < 64) return
      console.log('all open')
      open.${side}.forEach(flood)
    })
  }
})
`

test.each(['client', 'server'] as const)(
  'frames without content, as fast as the %s of 64 WebSockets can send, do not delay the hits of others',
  async (side) => {
    const [port, adminPort, upstreamPort] = [await freePort(), await freePort(), await freePort()]
    const origin = await startOrigin((_, wire) => wire.respond({ content: 'ok' }))
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

    const attacker = startProcess(process.execPath, ['-e', program(side, port, upstreamPort)])
    onTestFinished(async () => void (await attacker.stop(0)))
    await expect.poll(() => attacker.output()).toContain('all open')

    const spentMs = await processorMsOfHits(pid, url, { hits: 200, everyMs: 10 })
    expect(quantile(spentMs, 0.99)).toBeLessThan(1_000)
  },
)
