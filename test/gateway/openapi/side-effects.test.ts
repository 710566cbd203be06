import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

/** Every write changes the item that it names and another one, as no document says. */
const state = new Map<string, number>()
let origin: Origin
let gateway: TestGateway
/** Of the same upstream, with invalidation: structural. */
let declared: TestGateway

const shown = (id: string): string => `${id} ${state.get(id) ?? 0}`

beforeAll(async () => {
  origin = await startOrigin(({ method, target, content }, wire) => {
    const id = target.split('/')[2]?.split('?')[0] ?? ''
    if (method === 'GET') {
      const all = ['1', '2', '3'].map(shown).join(', ')
      wire.respond({ content: id === '' ? all : shown(id) })
      return
    }
    const other = content.toString() === '' ? '3' : (JSON.parse(content.toString()).other as string)
    for (const one of [id, other]) state.set(one, (state.get(one) ?? 0) + 1)
    // A response that breaks: the outcome is unknown to the gateway.
    if (other === '2') wire.reset()
    else wire.respond({ status: 200, content: 'done' })
  })
  const api = {
    contract: 'openapi',
    mount: '/',
    document: fileURLToPath(new URL('./side-effects.yaml', import.meta.url)),
    upstream: { targets: [origin.origin], retry: { attempts: 1 } },
    cache: { rules: [{ match: 'GET /**', ttl: '1h' }] },
  }
  declared = await startTestGateway({ services: { api: { ...api, invalidation: 'structural' } } })
  gateway = await startTestGateway({ services: { api } })
})

closeAfterAll(() => [gateway, declared, origin])

const read = async (path: string, { publicAddress } = gateway): Promise<string> =>
  (await fetch(publicAddress + path)).text()

const write = async (id: string, other: string, { publicAddress } = gateway): Promise<void> => {
  const body = JSON.stringify({ other })
  const headers = { 'Content-Type': 'application/json' }
  await (await fetch(`${publicAddress}/items/${id}`, { method: 'POST', headers, body })).text()
}

const id = fc.constantFrom('1', '2', '3')
const step = fc.oneof(
  fc.record({ kind: fc.constant('write' as const), id, other: id }),
  fc.record({ kind: fc.constant('reads' as const), id }),
)

test('after a write is acknowledged, or has an unknown outcome, no read returns older data, whatever else the write changes', async () => {
  let hits = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), async (steps) => {
      for (const one of steps) {
        if (one.kind === 'write') await write(one.id, one.other)
        else {
          const before = origin.received.length
          const [list, item, again] = await Promise.all([
            read('/items'),
            read(`/items/${one.id}`),
            read('/items'),
          ])
          hits += 3 - (origin.received.length - before)
          expect([list, item, again]).toEqual([['1', '2', '3'].map(shown).join(', '), shown(one.id), list])
        }
      }
    }),
    { numRuns: 12 },
  )
  expect(hits).toBeGreaterThan(20)
})

const shownAt = (path: string): string => {
  const [, , id] = path.split('/')
  return id === undefined ? ['1', '2', '3'].map(shown).join(', ') : shown(id)
}

test('with invalidation: structural no read returns older data either, where the document declares what a write changes, and other responses survive', async () => {
  const paths = ['/items', ...['1', '2', '3'].flatMap((one) => [`/items/${one}`, `/groups/${one}`])]
  let survived = 0
  let reads = 0
  await fc.assert(
    fc.asyncProperty(fc.array(id, { minLength: 3, maxLength: 8 }), async (written) => {
      for (const one of written) {
        for (const path of paths) await read(path, declared)
        // Changes the item, its list and its group, which the document declares.
        await write(one, one, declared)
        const before = origin.received.length
        for (const path of paths) expect(await read(path, declared)).toBe(shownAt(path))
        reads += paths.length
        survived += paths.length - (origin.received.length - before)
      }
    }),
    { numRuns: 3 },
  )
  process.stderr.write(`structural: ${survived} of ${reads} stored responses survive a write\n`)
  expect(survived / reads).toBeGreaterThan(0.1)
})
