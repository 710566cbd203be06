import { PassThrough, type Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { bufferedResponse, readBody } from '../../../../src/http/bodies/read-body.ts'
import { createBufferedBytes } from '../../../../src/server/buffered-bytes.ts'

const buffered = () => createBufferedBytes({ maxBytes: () => 20_000, report: () => undefined })

const responseOf = (content: Readable) => ({ status: 200, headers: [], content }) as const

const textOf = async (content: unknown): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of content as Readable) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

const bodyOf = (...chunks: readonly Buffer[]): PassThrough => {
  const body = new PassThrough()
  for (const chunk of chunks) body.write(chunk)
  body.end()
  return body
}

test('a body of exactly its bound is read whole, and stays reserved until it is released', async () => {
  const all = buffered()
  const body = bodyOf(Buffer.alloc(4_000, 'x'), Buffer.alloc(4_000, 'y'))
  const reading = await readBody(body, 8_000, all.budget('request-body', 'a'))
  if (reading.kind !== 'whole') throw new Error(reading.kind)
  expect(reading.content.length).toBe(8_000)
  expect(all.bytes).toBeGreaterThanOrEqual(8_000)
  reading.release()
  expect(all.bytes).toBe(0)
})

test.each([
  ['too-large', 7_999, 1],
  ['no-room', 100_000, 4],
] as const)('a body that is %s stays complete, and reserves nothing', async (kind, maxBytes, repeat) => {
  const all = buffered()
  const chunks = Array.from({ length: 2 * repeat }, (_, at) => Buffer.alloc(4_000, String(at)))
  const reading = await readBody(bodyOf(...chunks), maxBytes, all.budget('request-body', 'a'))
  if (reading.kind === 'whole') throw new Error(reading.kind)
  expect(reading.kind).toBe(kind)
  expect(all.bytes).toBe(0)
  expect(await textOf(reading.all())).toBe(Buffer.concat(chunks).toString())
})

test('a body that fails throws its fault, and reserves nothing', async () => {
  const all = buffered()
  const body = new PassThrough()
  body.write(Buffer.alloc(1_000))
  const reading = readBody(body, 8_000, all.budget('request-body', 'a'))
  await expect.poll(() => all.bytes).toBeGreaterThan(0)
  body.destroy(new Error('broke off'))
  await expect(reading).rejects.toThrow('broke off')
  expect(all.bytes).toBe(0)
})

test('a response that is longer than may be read, and is given up before anything of it was taken, ends its source', async () => {
  const source = new PassThrough()
  source.write(Buffer.alloc(9_000))
  const { bytes, budget } = buffered()
  const { content } = await bufferedResponse(responseOf(source), 8_000, budget('write-answer', 'a'))
  expect(Buffer.isBuffer(content)).toBe(false)
  ;(content as Readable).destroy()
  await expect.poll(() => source.destroyed).toBe(true)
  expect(bytes).toBe(0)
})

test('a response beyond the budget is streamed, complete', async () => {
  const source = bodyOf(Buffer.alloc(15_000, 'x'))
  const all = buffered()
  const { content } = await bufferedResponse(responseOf(source), 100_000, all.budget('write-answer', 'a'))
  expect(await textOf(content)).toBe('x'.repeat(15_000))
  expect(all.bytes).toBe(0)
})
