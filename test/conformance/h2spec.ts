import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkCommandLine, words } from '../../bench/command-line.ts'
import { keyPair } from '../support/certificates.ts'
import { startTestGateway } from '../support/gateway.ts'
import { startOrigin } from '../support/origin.ts'

// npm run conformance -- FILE: the cases of h2spec, a conformance test of HTTP/2, over TLS, to the gateway and to a server of node:http2
// alone. Exits with 1 when the gateway fails a case that node:http2 passes. FILE is the program, built from github.com/summerwind/h2spec.

const cases = 146
const run = promisify(execFile)
const print = (text: string): void => void process.stdout.write(`${text}\n`)

type Result = { readonly name: string; readonly outcome: 'passed' | 'failed' | 'skipped' }

const testCase = /<testcase package="([^"]+)" classname="([^"]+)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g

const resultsOf = (report: string): readonly Result[] =>
  [...report.matchAll(testCase)].map(([, section = '', title = '', inner = '']) => ({
    name: `${section}: ${title}`,
    outcome: /<(?:failure|error)/.test(inner) ? 'failed' : inner.includes('<skipped') ? 'skipped' : 'passed',
  }))

const resultsAt = async (
  program: string,
  folder: string,
  hostname: string,
  port: string,
): Promise<readonly Result[]> => {
  const report = join(folder, `${port}.xml`)
  // It exits with 1 when a case fails.
  await run(program, ['-h', hostname, '-p', port, '-t', '-k', '-o', '5', '-j', report]).catch(() => {})
  return resultsOf(await readFile(report, 'utf8'))
}

const namesOf = (results: readonly Result[], outcome: Result['outcome']): readonly string[] =>
  results.filter((one) => one.outcome === outcome).map(({ name }) => name)

const compare = async (program: string): Promise<number> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-h2spec-'))
  const content = 'x'.repeat(1_000)
  const alone = createSecureServer(keyPair('good'), (_, response) => response.end(content))
  alone.listen(0, '127.0.0.1')
  await once(alone, 'listening')
  const origin = await startOrigin((_, wire) => wire.respond({ content }))
  const gateway = await startTestGateway({
    listen: { port: 0, http2: true, tls: keyPair('good') },
    services: { pages: { contract: 'open', mount: '/', upstream: { targets: [origin.origin] } } },
  })
  try {
    const { hostname, port } = new URL(gateway.publicAddress)
    const results = await resultsAt(program, folder, hostname, port)
    const { port: portAlone } = alone.address() as AddressInfo
    const passedAlone = new Set(
      namesOf(await resultsAt(program, folder, '127.0.0.1', `${portAlone}`), 'passed'),
    )
    const passed = new Set(namesOf(results, 'passed'))
    const lost = [...passedAlone].filter((name) => !passed.has(name))
    for (const name of namesOf(results, 'failed')) print(`failed   ${name}`)
    for (const name of lost) print(`passed by node:http2 alone   ${name}`)
    print(`${passed.size} of ${results.length} cases pass, of node:http2 alone ${passedAlone.size}`)
    return results.length >= cases && lost.length === 0 ? 0 : 1
  } finally {
    await gateway.close()
    await origin.close()
    alone.close()
    await rm(folder, { recursive: true, force: true })
  }
}

const usage = 'npm run conformance -- FILE: the path of h2spec'
checkCommandLine(usage, {}, [words.any])
const [program] = process.argv.slice(2)
if (program === undefined) print(usage)
process.exitCode = program === undefined ? 2 : await compare(program)
