import { type ClientHttp2Session, createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { Http2Client } from '../../../src/upstream/targets/connector.ts'
import { keyPair, pem } from '../../support/certificates.ts'

test('a session that takes no more streams fails the request that meets it, and the next one has another session', async () => {
  const server = createSecureServer(keyPair('good'), (incoming, response) => {
    incoming.resume()
    response.end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = new Http2Client(origin, { allowH2: true, connect: { ca: pem('ca.pem') } })
  onTestFinished(async () => {
    await client.destroy()
    server.close()
  })
  // Streamed content is sent a moment later, where an exception would not be caught.
  const post = async (): Promise<string> => {
    const { body } = await client.request({ method: 'POST', path: '/', body: Readable.from(['x']) })
    return body.text()
  }
  expect(await post()).toBe('ok')
  const key = Object.getOwnPropertySymbols(client).find(({ description }) => description === 'http2Session')
  const sessions = client as unknown as Record<symbol, ClientHttp2Session>
  const answered = post()
  sessions[key as symbol]?.close()
  await expect(answered).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_HTTP2_/) })
  expect(await post()).toBe('ok')
})
