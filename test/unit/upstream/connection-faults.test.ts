import { AssertionError } from 'node:assert'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createConnector } from '../../../src/upstream/targets/connector.ts'
import { startOrigin } from '../../support/origin.ts'
import { upstreamOf } from './upstream-of.ts'

test.each(['data', 'end'])(
  'what a listener of a connection throws at %s ends this connection alone',
  async (event) => {
    const origin = await startOrigin((_, wire) => {
      wire.respond({ content: 'x' })
      wire.end()
    })
    const { options } = upstreamOf([origin.origin])
    const faults: unknown[] = []
    const connect = createConnector(
      options,
      (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
      (fault) => faults.push(fault),
    )
    const fault = new AssertionError({ message: 'of the HTTP client' })
    const socket = await new Promise<Socket>((resolve, reject) => {
      const { hostname, host, protocol, port } = new URL(origin.origin)
      connect({ hostname, host, protocol, port }, (...[error, connected]) =>
        error === null ? resolve(connected as Socket) : reject(error),
      )
    })
    socket.on(event, () => {
      throw fault
    })
    const errors: unknown[] = []
    socket.on('error', (error) => errors.push(error))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.resume()
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await closed
    expect(faults).toEqual([fault])
    expect(errors).toEqual([fault])
    await origin.close()
  },
)
