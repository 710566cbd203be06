import { PassThrough, type Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { completed } from '../../../../src/http/bodies/complete-response.ts'
import { createBufferedBytes } from '../../../../src/server/buffered-bytes.ts'

const buffered = () => createBufferedBytes({ maxBytes: () => 20_000, report: () => undefined })

const responseOf = (content: Readable) => ({ status: 200, headers: [], content }) as const

test('a response that is longer than may be read, and is given up before anything of it was taken, ends its source', async () => {
  const source = new PassThrough()
  source.write(Buffer.alloc(9_000))
  const { bytes, budget } = buffered()
  const { content } = await completed(responseOf(source), 8_000, budget('write-answer', 'a'))
  expect(Buffer.isBuffer(content)).toBe(false)
  ;(content as Readable).destroy()
  await expect.poll(() => source.destroyed).toBe(true)
  expect(bytes).toBe(0)
})

test('a response beyond the budget is streamed, complete', async () => {
  const source = new PassThrough()
  source.end(Buffer.alloc(15_000, 'x'))
  const all = buffered()
  const { content } = await completed(responseOf(source), 100_000, all.budget('write-answer', 'a'))
  const chunks: Buffer[] = []
  for await (const chunk of content as Readable) chunks.push(chunk as Buffer)
  expect(Buffer.concat(chunks)).toEqual(Buffer.alloc(15_000, 'x'))
  expect(all.bytes).toBe(0)
})
