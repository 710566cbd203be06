import { describe, expect, onTestFinished, test } from 'vitest'
import { closedAfterEach } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { LocalName } from '../support/local-names.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'

const opened = closedAfterEach()

type Purge = { readonly tags: readonly string[]; readonly all: boolean }

/** A front end whose process can be replaced: it knows the purges that its process was sent, and tells the id of the process. */
class FrontEnd {
  #origin: Origin | undefined
  /** Undefined: it tells none. */
  process: string | undefined
  status = 204
  /** The purges of each process, in order; heartbeats have no tags. */
  readonly purges: { readonly process: string | undefined; readonly purge: Purge }[] = []

  constructor(process: string | undefined) {
    this.process = process
  }

  async start(listen: { readonly port?: number; readonly host?: string } = {}): Promise<string> {
    this.#origin = await startOrigin(({ content }, wire) => {
      const purge = JSON.parse(content.toString()) as Purge
      if (this.status === 204) this.purges.push({ process: this.process, purge })
      const headers: Record<string, string> = {}
      if (this.process !== undefined) headers['Trellis-Receiver'] = this.process
      wire.respond({ status: this.status, headers })
    }, listen)
    opened.push({ close: async () => this.#origin?.close() })
    return this.#origin.origin
  }

  purgesOf(process: string | undefined): readonly Purge[] {
    return this.purges.filter((sent) => sent.process === process).map(({ purge }) => purge)
  }
}

const start = async (
  frontEnd: FrontEnd,
  receiver: Record<string, unknown> = {},
  listen: { readonly port?: number } = {},
) => {
  const site = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"id":7,"type":"post"}' }),
  )
  const url = await frontEnd.start(listen)
  const gateway = await startTestGateway({
    services: {
      blog: siteService(site.origin, {
        cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1m' }] },
        downstream: {
          settle: '1ms',
          receivers: [{ type: 'next', url: `${url}/purge`, secret: 's', timeout: '20s', ...receiver }],
        },
      }),
    },
  })
  opened.push(site, { close: () => gateway.close() })
  return gateway
}

const isBehind = (gateway: TestGateway) => gateway.metric('trellis_downstream_behind')
const caughtUp = (gateway: TestGateway) => expect.poll(() => isBehind(gateway)).toBe(0)

const write = (gateway: TestGateway) =>
  fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/posts/7`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
    body: '{"title":"new"}',
  })

const mayBeStored = async (gateway: TestGateway): Promise<boolean> => {
  const response = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/posts/7`)
  return response.headers.get('cdn-cache-control') !== 'no-store'
}

describe('a receiver that tells the id of its process', () => {
  test('is sent everything after a restart, before the next write is acknowledged', async () => {
    const frontEnd = new FrontEnd('one')
    const gateway = await start(frontEnd)
    await caughtUp(gateway)
    expect((await write(gateway)).status).toBe(200)
    frontEnd.process = 'two'
    expect((await write(gateway)).status).toBe(200)
    expect(frontEnd.purgesOf('two').some(({ all }) => all)).toBe(true)
  })

  test('is sent everything after a restart, without a write', async () => {
    const frontEnd = new FrontEnd('one')
    const gateway = await start(frontEnd)
    await caughtUp(gateway)
    frontEnd.process = 'two'
    await expect.poll(() => frontEnd.purgesOf('two').some(({ all }) => all)).toBe(true)
    await caughtUp(gateway)
    expect(await mayBeStored(gateway)).toBe(true)
  })

  test('that no longer tells one is another process', async () => {
    const frontEnd = new FrontEnd('one')
    const gateway = await start(frontEnd)
    await caughtUp(gateway)
    frontEnd.process = undefined
    await expect.poll(() => frontEnd.purgesOf(undefined).some(({ all }) => all)).toBe(true)
  })

  test('is asked about each second: while it is away nothing may be stored, and /readyz says why', async () => {
    const frontEnd = new FrontEnd('one')
    const gateway = await start(frontEnd)
    await caughtUp(gateway)
    frontEnd.status = 503
    await expect.poll(() => isBehind(gateway)).toBe(1)
    expect(await mayBeStored(gateway)).toBe(false)
    const ready = await (await fetch(`${gateway.adminAddress}/readyz`)).json()
    expect(ready).toMatchObject({
      degraded: [{ reason: 'downstream', service: 'blog', receiver: 'next', cause: 'status-503' }],
    })
    frontEnd.status = 204
    await caughtUp(gateway)
    expect(await mayBeStored(gateway)).toBe(true)
  })

  test('refuses writes as soon as it is known to be away', async () => {
    const frontEnd = new FrontEnd('one')
    const gateway = await start(frontEnd, { onFailure: 'refuse' })
    await caughtUp(gateway)
    frontEnd.status = 503
    await expect.poll(() => isBehind(gateway)).toBe(1)
    expect((await write(gateway)).status).toBe(503)
  })
})

test('a receiver that tells no id gets no heartbeats', async () => {
  const frontEnd = new FrontEnd(undefined)
  const gateway = await start(frontEnd)
  await caughtUp(gateway)
  // The purge of everything is repeated once, five to ten seconds later: twice as long as a heartbeat takes.
  await expect.poll(() => frontEnd.purges.length).toBeGreaterThan(1)
  expect(frontEnd.purges.every(({ purge }) => purge.all)).toBe(true)
})

test('each address of a name is an instance: one that joins is told everything first', async () => {
  const frontEnd = new FrontEnd('one')
  const gateway = await start(frontEnd, { instances: 'dns' })
  await caughtUp(gateway)
  expect(frontEnd.purgesOf('one')[0]).toMatchObject({ all: true })
  expect((await write(gateway)).status).toBe(200)
  expect(frontEnd.purgesOf('one').some(({ all, tags }) => !all && tags.length > 0)).toBe(true)
})

test('an instance that joins between two lookups is told everything before the next write is acknowledged', async () => {
  const name = new LocalName('front.test')
  onTestFinished(() => name.remove())
  name.addresses = ['127.0.0.1']
  const port = await freePort()
  const [first, second] = [new FrontEnd('one'), new FrontEnd('two')]
  const gateway = await start(first, { instances: 'dns', url: `http://front.test:${port}/purge` }, { port })
  await second.start({ port, host: '127.0.0.2' })
  await caughtUp(gateway)
  expect((await write(gateway)).status).toBe(200)
  // The next one is a second away.
  const { lookups } = name
  await expect.poll(() => name.lookups, { interval: 5 }).toBeGreaterThan(lookups)
  name.addresses = ['127.0.0.1', '127.0.0.2']
  expect((await write(gateway)).status).toBe(200)
  expect(second.purgesOf('two')[0]).toMatchObject({ all: true })
})

describe('while the resolver of the name of a front end hangs', () => {
  const startNamed = async (onFailure: string) => {
    const name = new LocalName('front.test')
    onTestFinished(() => name.remove())
    name.addresses = ['127.0.0.1']
    const port = await freePort()
    const frontEnd = new FrontEnd('one')
    const url = `http://front.test:${port}/purge`
    const gateway = await start(frontEnd, { instances: 'dns', url, onFailure, timeout: '1s' }, { port })
    await caughtUp(gateway)
    return { name, port, gateway, frontEnd }
  }

  test('writes are acknowledged by those that are known, and nothing may be stored in front', async () => {
    const { name, port, gateway } = await startNamed('wait')
    const answer = name.hang()
    const second = new FrontEnd('two')
    await second.start({ port, host: '127.0.0.2' })
    name.addresses = ['127.0.0.1', '127.0.0.2']
    expect((await write(gateway)).status).toBe(200)
    expect(await isBehind(gateway)).toBe(1)
    const read = await fetch(`${gateway.publicAddress}/index.php/site-json/site/v2/posts/7`)
    expect(read.headers.get('surrogate-key')).toBeNull()
    expect(read.headers.get('cdn-cache-control')).toBe('no-store')
    const { lookups } = name
    for (let count = 0; count < 5; count += 1) expect((await write(gateway)).status).toBe(200)
    expect(name.lookups).toBe(lookups)
    answer()
    await caughtUp(gateway)
    expect(second.purgesOf('two')[0]).toMatchObject({ all: true })
  })

  test('where every front end must confirm, no write is acknowledged', async () => {
    const { name, gateway } = await startNamed('refuse')
    const answer = name.hang()
    expect((await write(gateway)).status).toBe(504)
    expect((await write(gateway)).status).toBe(503)
    answer()
    await caughtUp(gateway)
    expect((await write(gateway)).status).toBe(200)
  })
})
