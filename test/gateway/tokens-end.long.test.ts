import { beforeAll, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_, wire, number) => wire.respond({ content: `${number}` }))
  gateway = await startTestGateway({
    services: {
      own: {
        contract: 'open',
        mount: '/own',
        upstream: { targets: [origin.origin] },
        cache: {
          rules: [{ match: 'GET /**', ttl: '10m', scope: 'credential', override: true, staleIfError: '1h' }],
        },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const token = (seconds: number): string =>
  `${part({ alg: 'none' })}.${part({ exp: Math.floor(Date.now() / 1000) + seconds })}.x`

const ask = async (path: string, headers: Record<string, string>) => {
  const response = await fetch(`${gateway.publicAddress}/own${path}`, { headers: headers })
  return { text: await response.text(), status: response.headers.get('cache-status') ?? '' }
}

test.each([
  ['Authorization', (jwt: string) => `Bearer ${jwt}`],
  ['X-Auth-Token', (jwt: string) => jwt],
])('what is stored for a token in %s ends with the token', async (name, write) => {
  const path = `/${name}`
  let headers: Record<string, string> = {}
  let first = ''
  /** With another token each time: on a busy machine one may end before it is used twice. */
  const again = async (): Promise<string> => {
    headers = { [name]: write(token(2)) }
    first = (await ask(path, headers)).status
    return (await ask(path, headers)).status
  }
  await expect.poll(again).toMatch(/hit/)
  expect(Number(/ttl=(\d+)/.exec(first)?.[1])).toBeLessThanOrEqual(2)
  const later = async () => (await ask(path, headers)).status
  await expect.poll(later).toMatch(/detail=no-freshness/)
  expect((await ask(path, headers)).text).not.toBe((await ask(path, headers)).text)
})

test('a token that lasts longer than the rule, and a credential that is no token, keep the ttl', async () => {
  for (const value of [`Bearer ${token(9_999)}`, 'Basic eA==']) {
    const { status } = await ask('/long', { Authorization: value })
    expect(status).toMatch(/ttl=(?:599|600)/)
  }
})
