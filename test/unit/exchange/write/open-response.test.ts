import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { expect, test } from 'vitest'
import { OpenResponse } from '../../../../src/exchange/write/open-response.ts'
import { createLatch } from '../../../support/latch.ts'

/** An open response, the content that it is made of, and what happened to it. */
const opened = (declared: number | undefined, dropped: Promise<unknown> | undefined = undefined) => {
  const steps: string[] = []
  const content = new PassThrough()
  const noted = (step: string): Promise<unknown> | undefined => {
    steps.push(step)
    return dropped
  }
  const open = new OpenResponse(content, declared, {
    beforePiece: () => noted('piece'),
    ended: () => noted('ended'),
    brokenOff: () => void noted('broken off'),
  })
  const over = pipeline(content, open).catch(() => undefined)
  return { steps, content, open, over }
}

test('each piece, and the end, comes after what is dropped before it', async () => {
  const { steps, content, open, over } = opened(undefined)
  open.resume()
  content.write('a')
  content.end('b')
  await over
  expect(steps).toEqual(['piece', 'piece', 'ended'])
})

test.each([undefined, 1])(
  'a piece waits for what is dropped before it, with declared length %s',
  async (declared) => {
    const dropped = createLatch()
    const { content, open } = opened(declared, dropped.opened)
    content.write('a')
    await new Promise((resolve) => setImmediate(resolve))
    expect(open.read()).toBeNull()
    dropped.open()
    await once(open, 'readable')
    expect(String(open.read())).toBe('a')
  },
)

test('a declared length ends it with its last octet', async () => {
  const { steps, content, open, over } = opened(2)
  open.resume()
  content.write('a')
  content.write('b')
  await expect.poll(() => steps).toEqual(['piece', 'ended'])
  content.end()
  await over
  expect(steps).toEqual(['piece', 'ended'])
})

test('one that is shorter than its length is broken off', async () => {
  const { steps, content, open, over } = opened(3)
  open.resume()
  content.end('a')
  await over
  expect(steps).toEqual(['piece', 'broken off'])
})

test.each([
  ['its content fails', ({ content }: ReturnType<typeof opened>) => content.destroy(new Error('reset'))],
  ['its client leaves', ({ open }: ReturnType<typeof opened>) => open.destroy()],
])('it is broken off once when %s', async (_, breakIt) => {
  const response = opened(undefined)
  response.open.resume()
  response.content.write('a')
  await expect.poll(() => response.steps).toEqual(['piece'])
  breakIt(response)
  await response.over
  expect(response.steps).toEqual(['piece', 'broken off'])
})

test('it is broken off when its client leaves after the upstream has sent everything', async () => {
  const { steps, content, open, over } = opened(undefined, createLatch().opened)
  content.end('a')
  await once(content, 'end')
  expect(steps).toEqual(['piece'])
  open.destroy()
  await over
  expect(steps).toEqual(['piece', 'broken off'])
})
