import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { startOrigin } from '../../support/origin.ts'

const content = JSON.stringify({ query: '{ a }' })
const head = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${content.length}\r\n\r\n`

const start = async () => {
  let held: Promise<void> | undefined
  const hold = (): (() => void) => {
    let release = (): void => undefined
    held = new Promise((resolve) => {
      release = resolve
    })
    return release
  }
  const origin = await startOrigin(async ({ target, content: received }, wire) => {
    await held
    wire.respond({
      headers: { 'Content-Type': 'application/json' },
      content: JSON.stringify({ data: { target, received: received.toString() } }),
    })
  })
  const upstream = { targets: [origin.origin] }
  const gateway = await startTestGateway({
    services: {
      graph: { contract: 'graphql', mount: '/graphql', upstream },
      open: { contract: 'open', mount: '/', upstream },
    },
  })
  onTestFinished(async () => {
    await gateway.close()
    await origin.close()
  })
  const { hostname, port } = new URL(gateway.publicAddress)
  const socket = connect(Number(port), hostname).setNoDelay(true)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  let text = ''
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString('latin1')
  })
  const responses = (): number => text.split('HTTP/1.1 200 OK').length - 1
  return { origin, gateway, socket, text: () => text, responses, hold }
}

/** Lengths of the first of two packets: in the head, between head and content, in the content. */
const cuts = [10, head('/open').length, head('/open').length + 1, head('/open').length + content.length - 1]

test.each(['/open', '/graphql'])(
  'a short content of %s arrives whole, however it is cut in two',
  async (path) => {
    const { origin, socket, responses } = await start()
    const bytes = head(path) + content
    for (const [at, cut] of [...cuts, bytes.length].entries()) {
      socket.write(bytes.slice(0, cut))
      if (cut < bytes.length) await new Promise((resolve) => setTimeout(resolve, 20))
      socket.write(bytes.slice(cut))
      await expect.poll(responses).toBe(at + 1)
    }
    expect(origin.received.every((request) => request.content.toString() !== '')).toBe(true)
  },
)

test('requests with and without contents are answered in their order, in one packet', async () => {
  const { origin, socket, text, responses } = await start()
  const get = 'GET /get HTTP/1.1\r\nHost: a\r\n\r\n'
  socket.write(`${head('/1')}${content}${get}${head('/2')}${content}${head('/3')}${content}${get}`)
  await expect.poll(responses).toBe(5)
  expect(text()).toMatch(/\/1[\s\S]*\/get[\s\S]*\/2[\s\S]*\/3[\s\S]*\/get/)
  const posted = origin.received.filter(({ method }) => method === 'POST')
  expect(posted.map((request) => request.content.toString())).toEqual([content, content, content])
})

test.each(['/open', '/graphql'])(
  'a short content of %s counts as buffered until its response is there',
  async (path) => {
    const { gateway, origin, socket, responses, hold } = await start()
    const release = hold()
    socket.write(head(path) + content)
    await origin.until(() => origin.received.length === 1)
    const buffered = () => gateway.metric('trellis_buffered_bytes')
    expect(await buffered()).toBeGreaterThanOrEqual(content.length)
    release()
    await expect.poll(responses).toBe(1)
    await expect.poll(buffered).toBe(0)
  },
)
