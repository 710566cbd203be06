import { createServer } from 'node:http'
import type { Profiler } from 'node:inspector'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { startTestGateway } from '../test/support/gateway.ts'

// npm run bench:request-files: how many files and functions of src one request runs through, by the coverage of V8. With --files the
// files too; with --json the functions of src/exchange.

const post = { id: 7, date: '2026-01-01T00:00:00', title: { rendered: 'A' }, _links: {} }

const upstream = createServer((request, response) => {
  request.resume()
  if (request.url?.endsWith('/posts/404404') === true) {
    request.socket.destroy()
    return
  }
  response.setHeader('content-type', 'application/json')
  response.setHeader('etag', '"1"')
  response.end(JSON.stringify(request.url?.includes('/posts/') ? post : []))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

const gateway = await startTestGateway({
  services: {
    site: {
      contract: 'site',
      mount: '/index.php/site-json',
      discovery: { source: 'static', identity: { name: 'A site' } },
      upstream: { targets: [origin], basePath: '/index.php/wp-json' },
    },
  },
})
const root = `${gateway.publicAddress}/index.php/site-json`
const writer = { authorization: 'Bearer a', 'content-type': 'application/json' }

const send = async (method: string, path: string, content?: unknown): Promise<number> => {
  const response = await fetch(`${root}${path}`, {
    method,
    ...(content === undefined ? {} : { headers: writer, body: JSON.stringify(content) }),
  })
  await response.arrayBuffer()
  return response.status
}
const write = (id: number) => ({ method: 'PUT', path: `/site/v2/posts/${id}`, body: { title: 'B' } })
const requests: readonly (readonly [string, () => Promise<number>])[] = [
  ['hit', () => send('GET', '/site/v2/posts/7')],
  ['miss', () => send('GET', `/site/v2/posts/${Math.ceil(Math.random() * 1e9)}`)],
  ['PUT', () => send('PUT', '/site/v2/posts/7', { title: 'B' })],
  ['PUT, lost', () => send('PUT', '/site/v2/posts/404404', { title: 'B' })],
  ['batch of three', () => send('POST', '/batch/v1', { requests: [write(7), write(8), write(9)] })],
  ['refused', () => send('GET', '/site/v2/posts?per_page=0')],
]

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Debugger.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const folder = new URL('../src/', import.meta.url).href

/** Names of the functions that ran: the compiler writes `const name = __name(function`. */
const namesOf = async (
  scriptId: string,
  functions: readonly Profiler.FunctionCoverage[],
): Promise<readonly string[]> => {
  const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId })
  return functions
    .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
    .map(({ ranges }) => scriptSource.slice(0, ranges[0]?.startOffset).slice(-80))
    .flatMap((before) => /(\w+) ?= ?(?:\/\*[^/]*\*\/ ?)?__name\($/.exec(before)?.[1] ?? [])
}

const counted = async (request: () => Promise<number>) => {
  // Twice before: what runs only once (a first connection, a compiled schema) is not part of a request.
  await request()
  await request()
  await session.post('Profiler.takePreciseCoverage')
  const status = await request()
  await new Promise((resolve) => setTimeout(resolve, 10))
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const names: string[] = []
  const steps: string[] = []
  let functions = 0
  for (const { scriptId, url, functions: all } of result) {
    if (!url.startsWith(folder)) continue
    const ran = all.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).length
    if (ran === 0) continue
    names.push(url.slice(folder.length))
    if (/\/exchange\/|\/service\/decide\.ts/.test(url)) steps.push(...(await namesOf(scriptId, all)))
    functions += ran
  }
  return { status, names, functions, steps }
}

for (const [name, request] of requests) {
  if (name === 'PUT') await send('GET', '/site/v2/posts/7')
  const { status, names, functions, steps } = await counted(request)
  if (process.argv.includes('--json')) {
    console.log(JSON.stringify({ name, status, steps }))
    continue
  }
  console.log(
    `${name.padEnd(16)} ${String(names.length).padStart(3)} files  ${String(functions).padStart(3)} functions  (${status})`,
  )
  if (process.argv.includes('--files'))
    console.log(
      names
        .sort()
        .map((one) => `  ${one}`)
        .join('\n'),
    )
}
session.disconnect()
await gateway.close()
upstream.close()
