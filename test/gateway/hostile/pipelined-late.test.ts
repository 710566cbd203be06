import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { startOrigin } from '../../support/origin.ts'

test('a request that comes while the third of three pipelined ones is answered gets its response too', async () => {
  const held: (() => void)[] = []
  const origin = await startOrigin(({ target }, wire) => {
    held.push(() => wire.respond({ content: target }))
  })
  onTestFinished(() => origin.close())
  const gateway = await startTestGateway({
    services: { open: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  onTestFinished(() => gateway.close())
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
  })
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
  socket.write(get('/1') + get('/2') + get('/3'))
  const respondNext = async (count: number): Promise<void> => {
    await origin.until(() => held.length === count)
    held[count - 1]?.()
  }
  await respondNext(1)
  await respondNext(2)
  await origin.until(() => held.length === 3)
  socket.write(get('/4'))
  await expect.poll(() => gateway.metric('trellis_in_flight_requests')).toBeGreaterThan(0)
  held[2]?.()
  await respondNext(4)
  await expect.poll(() => text).toMatch(/\/1[\s\S]*\/2[\s\S]*\/3[\s\S]*\/4$/)
})
