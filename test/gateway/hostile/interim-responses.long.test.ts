import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { exchangeBytes } from '../../support/raw-client.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startTestGateway({
    services: {
      open: {
        contract: 'open',
        mount: '/',
        upstream: { targets: [origin.origin], limits: { headerBytes: '32KiB' } },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
})

let number = 0
const send = (method: string, headers: Record<string, string> = {}): Promise<Response> => {
  number += 1
  return fetch(`${gateway.publicAddress}/${number}`, {
    method,
    headers: headers,
    ...(method === 'POST' ? { body: 'content' } : {}),
  })
}

const final = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\nok'

const heads: Readonly<Record<string, string>> = {
  '100': 'HTTP/1.1 100 Continue\r\n\r\n',
  '100 without a reason': 'HTTP/1.1 100\r\n\r\n',
  '100 of HTTP/1.0': 'HTTP/1.0 100 Continue\r\n\r\n',
  '100 with fields': 'HTTP/1.1 100 Continue\r\nConnection: close\r\nContent-Length: 7\r\nETag: "a"\r\n\r\n',
  '100, three times': 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3),
  '102': 'HTTP/1.1 102 Processing\r\n\r\n',
  '103': 'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n',
  '103 with Connection: close': 'HTTP/1.1 103 Early Hints\r\nConnection: close\r\nLink: </a>\r\n\r\n',
  '103 of HTTP/1.0': 'HTTP/1.0 103 Early Hints\r\n\r\n',
  '103, then 100': 'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
  '199': 'HTTP/1.1 199 Other\r\n\r\n',
}

describe.each(Object.entries(heads))('interim responses that nobody has asked for: %s', (_, interim) => {
  test.each(['GET', 'HEAD', 'POST', 'DELETE'])('%s is answered, and sent once', async (method) => {
    origin.script = (_request, wire) =>
      wire.write(method === 'HEAD' ? interim + final.slice(0, -2) : interim + final)
    const response = await send(method)
    expect([response.status, await response.text()]).toEqual([200, method === 'HEAD' ? '' : 'ok'])
    expect(response.headers.get('etag')).not.toBe('"a"')
    expect(origin.received).toHaveLength(1)
  })

  test('in pieces of one octet, and the connection is used again', async () => {
    origin.script = async (_request, wire) => {
      for (const octet of interim + final) {
        wire.write(octet)
        await new Promise(setImmediate)
      }
    }
    const before = origin.accepted
    expect(await (await send('GET')).text()).toBe('ok')
    expect(await (await send('GET')).text()).toBe('ok')
    expect(origin.received).toHaveLength(2)
    expect(origin.accepted - before).toBeLessThanOrEqual(1)
  })

  test('the final response is stored without the headers of the interim ones', async () => {
    origin.script = (_request, wire) => wire.write(interim + final)
    await (await send('GET')).text()
    number -= 1
    const again = await send('GET')
    expect(again.headers.get('link')).toBeNull()
    expect(await again.text()).toBe('ok')
    expect(origin.received).toHaveLength(1)
  })
})

test('more than a thousand are 502, whatever their status', async () => {
  for (const status of ['100 Continue', '103 Early Hints']) {
    origin.script = (_request, wire) => wire.write(`HTTP/1.1 ${status}\r\n\r\n`.repeat(1_001) + final)
    expect((await send('POST')).status).toBe(502)
  }
})

test('a connection that ends within a head is 502', async () => {
  origin.script = (_request, wire) => {
    wire.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-')
    wire.end()
  }
  expect((await send('POST')).status).toBe(502)
})

test('a response that arrives before any request is never the response to the next one', async () => {
  origin.script = (_request, wire) => {
    wire.write(`${final}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil`)
  }
  expect(await (await send('GET')).text()).toBe('ok')
  origin.script = (_request, wire) => wire.write(final)
  expect(await (await send('GET')).text()).toBe('ok')
})

test.each(['Server : old', 'X-A \t: 1', 'Content-Length : 2'])(
  'white space before the colon is removed: %s',
  async (line) => {
    origin.script = (_request, wire) =>
      wire.write(`HTTP/1.1 200 OK\r\n${line}\r\nContent-Type: a : b\r\nConnection: close\r\n\r\nok`)
    const response = await send('GET')
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'a : b'])
    expect(response.headers.get(line.split(/[ \t]/)[0] ?? '')).toBe(line.split(': ')[1])
  },
)

test('response headers up to upstream.limits.headerBytes pass, more are 502 with the name of the setting', async () => {
  const read = (): Promise<string> =>
    exchangeBytes(gateway.publicAddress, 'DELETE /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  origin.script = (_request, wire) => wire.respond({ headers: { 'X-Long': 'x'.repeat(31_000) } })
  expect(await read()).toMatch(/^HTTP\/1.1 200 /)
  origin.script = (_request, wire) => wire.respond({ headers: { 'X-Long': 'x'.repeat(33_000) } })
  expect(await read()).toMatch(/^HTTP\/1.1 502 [\s\S]*upstream\.limits\.headerBytes/)
})
