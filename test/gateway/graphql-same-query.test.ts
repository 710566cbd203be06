import { expect, onTestFinished, test } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'

// What is remembered of a request is of its service, its other parameters and its host, however often it is repeated.

const content = JSON.stringify({ query: '{ a }' })

test('the same query to two services, with other parameters and by other methods has the responses of each', async () => {
  const origin = await startOrigin(({ method, target }, wire) => {
    const told = { method: method === 'GET' ? 'GET' : 'POST', target: target.replace(/[?&]query=[^&]*/, '') }
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: JSON.stringify({ data: told }) })
  })
  onTestFinished(() => origin.close())
  const service = (name: string) => ({
    ...{ contract: 'graphql', mount: `/${name}` },
    upstream: { targets: [origin.origin], basePath: `/at-${name}` },
    cache: { rules: [{ match: 'query *', ttl: '1h' }] },
  })
  const gateway = await startTestGateway({ services: { one: service('one'), two: service('two') } })
  onTestFinished(() => gateway.close())
  const post = async (path: string) => {
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(gateway.publicAddress + path, { method: 'POST', headers, body: content })
    const { data } = (await response.json()) as { readonly data: { readonly target: string } }
    return { target: data.target, isHit: response.headers.get('cache-status')?.includes('; hit') }
  }
  for (const isHit of [false, true, true])
    for (const path of ['/one', '/two', '/one?lang=de', '/one?lang=fr', '/two?lang=de'])
      expect(await post(path)).toEqual({ target: `/at-${path.slice(1)}`, isHit })
  const byGet = await fetch(`${gateway.publicAddress}/two?lang=de&query=%7B+a+%7D`)
  expect(byGet.headers.get('cache-status')).toContain('; hit')
  expect(await byGet.json()).toEqual({ data: { method: 'POST', target: '/at-two?lang=de' } })
})
