import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { times } from '../../support/breadth.ts'
import { keyPair } from '../../support/certificates.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { pause, startOrigin } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'

test('HTTP/2 clients that disconnect in the middle of large responses do not stop the process', async () => {
  const origin = await startOrigin(async (_, wire, count) => {
    await pause((count * 37) % 300)
    wire.respond({ content: Buffer.alloc(2_000_000) })
  })
  onTestFinished(() => origin.close())
  const [port, adminPort] = [await freePort(), await freePort()]
  const services = {
    open: {
      contract: 'open',
      mount: '/',
      upstream: { targets: [origin.origin] },
    },
  }
  const listen = { host: '127.0.0.1', port, http2: true, tls: keyPair('good') }
  const gateway = await startGatewayProcess({ listen, services }, {}, [], [port, adminPort])
  onTestFinished(() => gateway.kill())

  const leave = async (afterMs: number): Promise<void> => {
    const client = connectHttp2(`https://127.0.0.1:${port}`, {
      createConnection: () =>
        connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    })
    client.on('error', () => {})
    await new Promise((resolve) => client.once('remoteSettings', resolve))
    for (let i = 0; i < 10; i += 1)
      client
        .request({ ':path': `/${(i * 7 + afterMs) % 30}` })
        .on('error', () => {})
        .resume()
    await pause(afterMs)
    client.destroy()
  }
  for (let round = 0; round < times(4, 12); round += 1) {
    await Promise.all(Array.from({ length: 20 }, (_, at) => leave((at * 53 + round * 31) % 400)))
    const alive = await fetch(`${gateway.adminOrigin}/livez`, { signal: AbortSignal.timeout(5_000) })
    expect(alive.status).toBe(200)
  }
})
