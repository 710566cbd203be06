import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { quantile } from '../../../bench/statistics.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { startHttpServer } from '../../support/http-server.ts'
import { pause, startOrigin } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'
import { programPid, startProcess } from '../../support/processes.ts'
import { processorMsOfHits } from '../../support/processor-time.ts'

/** A flood in a separate process, of 8 connections. `begin` is sent first, and then `more` as fast as it is taken. */
const flooder = (port: number, begin: string, more: string): string => `
const { connect } = require('node:net')
const block = Buffer.from(${JSON.stringify(more)}.repeat(10_000), 'latin1')
for (let i = 0; i < 8; i += 1) {
  const socket = connect({ port: ${port}, host: '127.0.0.1', localAddress: '127.0.0.2' })
  const write = () => { if (!socket.destroyed && socket.write(block)) setImmediate(write) }
  socket.on('error', () => {}).on('drain', write).resume()
  socket.write(${JSON.stringify(begin)})
  write()
}
console.log('begun')
`

test('bodies in chunks of one byte, as fast as 8 connections can send, do not delay the hits of others', async () => {
  const upstream = await startHttpServer(
    (incoming, outgoing) => void incoming.resume().once('end', () => outgoing.end('ok')),
  )
  onTestFinished(() => upstream.close())
  const [port, adminPort] = [await freePort(), await freePort()]
  const services = {
    open: {
      contract: 'open',
      mount: '/open',
      upstream: { targets: [upstream.origin] },
      cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
    },
  }
  const gateway = await startGatewayProcess({ services }, {}, [], [port, adminPort])
  onTestFinished(() => gateway.kill())
  const pid = await programPid(gateway.program)
  const url = `${gateway.origin}/open/a`
  expect(await (await fetch(url)).text()).toBe('ok')

  const head = `POST /open/upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`
  const attacker = startProcess(process.execPath, ['-e', flooder(port, head, '1\r\n \r\n')])
  onTestFinished(async () => void (await attacker.stop(0)))
  await expect.poll(() => attacker.output()).toContain('begun')

  const spentMs = await processorMsOfHits(pid, url, { hits: 100, everyMs: 20 })
  expect(quantile(spentMs, 0.5)).toBeLessThan(300)
})

test('a body arrives whole and in order, however many chunks it has', async () => {
  const origin = await startOrigin(({ content }, wire) => wire.respond({ content }))
  onTestFinished(() => origin.close())
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(() => gateway.close())
  const lengths = Array.from({ length: 3_000 }, (_, at) => (at % 500 === 499 ? 5_000 : (at % 3) + 1))
  const pieces = lengths.map((length, at) => String.fromCharCode(97 + (at % 26)).repeat(length))
  const chunks = pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`).join('')
  const bodies = Array.from({ length: 8 }, async () => {
    const { hostname, port } = new URL(gateway.publicAddress)
    const socket = connect(Number(port), hostname)
    socket.write(
      'POST /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    for (let at = 0; at < chunks.length; at += 4_999) {
      socket.write(chunks.slice(at, at + 4_999))
      await pause(0)
    }
    socket.write('0\r\n\r\n')
    return (await text(socket)).split('\r\n\r\n')[1]
  })
  for (const body of await Promise.all(bodies)) expect(body).toBe(pieces.join(''))
})
