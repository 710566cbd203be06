import { expect, onTestFinished, test } from 'vitest'
import { siteService, startTestGateway } from '../support/gateway.ts'
import { type Script, startOrigin } from '../support/origin.ts'

const json = { 'Content-Type': 'application/json; charset=UTF-8' }
const shown = '{"id":5,"type":"post"}'

/** Carries out the first DELETE and loses its connection, as one that restarts does. */
const losing = (repeated: number): Script => {
  let isGone = false
  return ({ method }, wire) => {
    if (method !== 'DELETE') {
      const found = { headers: { ...json, 'Cache-Control': 'max-age=60' }, content: shown }
      wire.respond(isGone ? { status: 404, headers: json, content: '{}' } : found)
    } else if (isGone) wire.respond({ status: repeated, headers: json, content: '{}' })
    else {
      isGone = true
      wire.reset()
    }
  }
}

const open = (origin: string, profile: string) => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: [origin] },
  cache: { profile, rules: [{ match: 'GET /**', ttl: '1h' }] },
})

test.each([
  ['safe', 400, (origin: string) => open(origin, 'safe'), '/things/5'],
  ['safe', 404, (origin: string) => open(origin, 'safe'), '/things/5'],
  ['rfc-shared-cache', 404, (origin: string) => open(origin, 'rfc-shared-cache'), '/things/5'],
  ['rfc-shared-cache', 500, (origin: string) => open(origin, 'rfc-shared-cache'), '/things/5'],
  ['site', 404, (origin: string) => siteService(origin), '/index.php/site-json/site/v2/posts/5'],
])(
  'a DELETE that was sent twice, since its connection broke, invalidates although the second one fails: %s, %i',
  async (_, status, service, path) => {
    const origin = await startOrigin(losing(status))
    const gateway = await startTestGateway({ services: { one: service(origin.origin) } })
    onTestFinished(async () => {
      await gateway.close()
      await origin.close()
    })
    const url = gateway.publicAddress + path
    const ask = async (method: string): Promise<readonly [number, boolean]> => {
      const headers = method === 'GET' ? {} : { Authorization: 'Basic YTpi' }
      const response = await fetch(url, { method, headers })
      await response.arrayBuffer()
      return [response.status, response.headers.get('cache-status')?.includes('; hit') === true]
    }
    await ask('GET')
    expect(await ask('GET')).toEqual([200, true])
    expect(await ask('DELETE')).toEqual([status, false])
    expect(await ask('GET')).toEqual([404, false])
    expect(origin.received.filter(({ method }) => method === 'DELETE')).toHaveLength(2)
  },
)
