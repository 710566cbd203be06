import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Script } from '../support/origin.ts'
import { headerOf, type OpenService, startOpenService } from './open-service.ts'

// Of the profile `rfc-shared-cache`: `safe` stores no 206 either.

let service: OpenService
let target = 0
beforeAll(async () => {
  service = await startOpenService()
})
afterAll(() => service.close())

const content = '0123456789'
const fresh = { 'Cache-Control': 'max-age=60', ETag: '"a"' }

/** An origin that does as RFC 9110 §14 says. */
const ranged: Script = ({ headers: asked }, wire) => {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(asked['range'] ?? '') ?? []
  if (from === undefined || to === undefined) {
    wire.respond({ headers: fresh, content })
    return
  }
  wire.respond({
    status: 206,
    headers: { ...fresh, 'Content-Range': `bytes ${from}-${to}/${content.length}` },
    content: content.slice(Number(from), Number(to) + 1),
  })
}

type Reply = { readonly status: number; readonly content: string; readonly cache: string }

const read = async (path: string, lines: readonly string[] = []): Promise<Reply> => {
  const reply = await service.ask([`GET ${path} HTTP/1.1`, ...lines])
  return {
    status: Number(reply.slice(9, 12)),
    content: reply.slice(reply.indexOf('\r\n\r\n') + 4),
    cache: headerOf(reply, 'Cache-Status') ?? '',
  }
}

const fresher = (): string => {
  target += 1
  return `/part/${target}`
}

test('a part is passed on and not stored, and neither answers a later range nor a read of the whole', async () => {
  const path = fresher()
  service.origin.script = ranged
  for (let i = 0; i < 2; i += 1) {
    const reply = await read(path, ['Range: bytes=2-5'])
    expect(reply).toMatchObject({ status: 206, content: '2345' })
    expect(reply.cache).toBe('trellis; fwd=uri-miss; fwd-status=206; detail=status')
  }
  expect(await read(path)).toMatchObject({ status: 200, content })
})

test('a range of the whole is answered by the cache', async () => {
  const path = fresher()
  service.origin.script = ranged
  await read(path)
  const before = service.origin.received.length
  const reply = await read(path, ['Range: bytes=2-5'])
  expect(reply).toMatchObject({ status: 206, content: '2345' })
  expect(reply.cache).toMatch(/^trellis; hit/)
  expect(service.origin.received).toHaveLength(before)
})

test.each([
  [416, 'Range: bytes=99-'],
  [412, 'If-Match: "z"'],
])('a refusal of one request is not stored, whatever its Cache-Control: %i to %s', async (status, line) => {
  const path = fresher()
  service.origin.script = (_, wire) => wire.respond({ status, headers: fresh, content: '' })
  expect(await read(path, [line])).toMatchObject({ status })
  service.origin.script = ranged
  expect(await read(path)).toMatchObject({ status: 200, content })
})
