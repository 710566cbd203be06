import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { resolve } from 'node:path'
import { readApiDocument } from '../src/openapi/document/read-document.ts'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { checkCommandLine, words } from './command-line.ts'
import { childrenOf, processorSeconds } from './processor-time.ts'

// npm run bench:openapi-start -- FILE: what a document adds to a start until /readyz answers, in processor time and memory, and the
// longest processor time of one of its first requests.
const usage = 'npm run bench:openapi-start -- FILE'
checkCommandLine(usage, {}, [words.any])
const [file] = process.argv.slice(2)
if (file === undefined) throw new Error(`name a document: ${usage}`)

const reading = await readApiDocument(resolve(file))
if (reading.kind === 'faults') throw new Error(reading.messages.join('\n'))
const paths = reading.document.contract.operations
  .filter(({ method, isAmbiguous }) => method === 'GET' && !isAmbiguous)
  .slice(0, 200)
  .map(({ template }) => template.replaceAll(/\{[^{}]*\}/g, '1'))

const upstream = createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json').end('{}')
})
await new Promise<void>((listening) => upstream.listen(0, '127.0.0.1', listening))
const address = upstream.address()
const target = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`

const residentMb = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024

/** The program is started by a shell. */
const childrenOfProgram = (pid: number): readonly number[] =>
  childrenOf(pid).filter((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('dist/main.js'))

const services = {
  without: { api: { contract: 'open', mount: '/', upstream: { targets: [target] } } },
  with: {
    api: {
      contract: 'openapi',
      mount: '/',
      document: resolve(file),
      upstream: { targets: [target] },
    },
  },
}

for (const [name, service] of Object.entries(services)) {
  const gateway = await startGatewayProcess({ services: service }, { UV_THREADPOOL_SIZE: '4' })
  const { pid } = gateway.program
  const [node = pid] = childrenOfProgram(pid)
  const seconds = processorSeconds(pid)
  const start = residentMb(node)
  let longest = 0
  let slowest = ''
  const before = processorSeconds(pid)
  let last = before
  for (const path of paths) {
    const response = await fetch(gateway.origin + path, { headers: { authorization: 'Bearer x' } })
    await response.arrayBuffer()
    const now = processorSeconds(pid)
    if (now - last > longest) {
      longest = now - last
      slowest = path
    }
    last = now
  }
  const after = residentMb(node)
  console.log(
    `${name.padEnd(8)} ready after ${seconds.toFixed(2)} s, ${start.toFixed(0)} MB; ${paths.length} first requests ${(last - before).toFixed(2)} s, longest ${(longest * 1000).toFixed(0)} ms (${slowest}), then ${after.toFixed(0)} MB`,
  )
  await gateway.stop()
}
upstream.close()
