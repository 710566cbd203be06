import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { pause } from '../support/origin.ts'
import { programPid } from '../support/processes.ts'

const mebibyte = 1024 * 1024
/** `TRELLIS_LARGE_MIB=1024 npx vitest run test/gateway/large-contents.long.test.ts` sends a GiB each way. */
const size = Number(process.env['TRELLIS_LARGE_MIB'] ?? 256) * mebibyte
const maxGrowth = 64 * mebibyte

const piece = Buffer.alloc(64 * 1024, 'large contents ')

const contents = (bytes: number): Readable =>
  Readable.from(
    (function* () {
      for (let sent = 0; sent < bytes; sent += piece.length) yield piece
    })(),
    { objectMode: false },
  )

/** Reads all of it, piece by piece, and keeps nothing; counts bytes that are not what was sent. */
const drained = async (content: AsyncIterable<Buffer>): Promise<{ bytes: number; wrong: number }> => {
  let bytes = 0
  let wrong = 0
  for await (const chunk of content) {
    const at = bytes % piece.length
    const same = Math.min(chunk.length, piece.length - at)
    if (chunk.compare(piece, at, at + same, 0, same) !== 0) wrong += 1
    bytes += chunk.length
  }
  return { bytes, wrong }
}

let origin: HttpServer
let gateway: GatewayProcess
let gatewayPid: number

const residentBytes = async (): Promise<number> => {
  const status = await readFile(`/proc/${gatewayPid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
}

/** How much more memory the gateway took at most while something went on. */
const growthDuring = async (work: () => Promise<void>): Promise<number> => {
  const before = await residentBytes()
  let max = before
  let isOver = false
  const watch = async (): Promise<void> => {
    while (!isOver) {
      max = Math.max(max, await residentBytes())
      await pause(20)
    }
  }
  const watching = watch()
  await work().finally(() => {
    isOver = true
  })
  // The gateway ends only after the last look.
  await watching
  return max - before
}

beforeAll(async () => {
  origin = await startHttpServer((incoming, response) => {
    if (incoming.method === 'GET') {
      const bytes = Number(incoming.url?.slice('/files/'.length))
      response.writeHead(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': bytes })
      void pipeline(contents(bytes), response)
      return
    }
    void drained(incoming).then((seen) => response.end(JSON.stringify(seen)))
  })
  gateway = await startGatewayProcess({
    limits: { uploadBytes: '4GiB', requestTimeout: '10m' },
    services: {
      files: {
        contract: 'open',
        mount: '/files',
        upstream: { targets: [origin.origin], basePath: '/files', timeouts: { total: '10m' } },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
  gatewayPid = await programPid(gateway.program)
  expect(await readFile(`/proc/${gatewayPid}/cmdline`, 'utf8')).toContain('dist/main.js')
  // What a process takes once, whatever it carries: code that was compiled, pools, the first buffers.
  await download(16 * mebibyte)
  await upload(16 * mebibyte)
})

afterAll(async () => {
  await gateway.stop()
  await origin.close()
})

const download = async (bytes: number): Promise<void> => {
  const asked = request(`${gateway.origin}/files/${bytes}`, { agent: false })
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  expect(await drained(response)).toEqual({ bytes, wrong: 0 })
}

const upload = async (bytes: number, framed = true): Promise<void> => {
  const sent = request(`${gateway.origin}/files/up`, {
    method: 'PUT',
    agent: false,
    headers: framed ? { 'Content-Length': bytes } : {},
  })
  const responded = once(sent, 'response')
  await pipeline(contents(bytes), sent)
  const [response] = (await responded) as [IncomingMessage]
  const text = (await response.toArray()).join('')
  expect(JSON.parse(text)).toEqual({ bytes, wrong: 0 })
}

test.each([
  ['download', () => download(size)],
  ['upload of known length', () => upload(size)],
  ['upload in chunks', () => upload(size, false)],
])(
  `a ${size / mebibyte} MiB %s takes less than 64 MiB of memory`,
  async (_, work) => {
    const grown = await growthDuring(work)
    expect(grown).toBeLessThan(maxGrowth)
  },
  300_000,
)
