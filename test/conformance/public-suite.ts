import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'

/** `true`, or the kind of failure and what was seen. */
type Result = true | readonly [kind: string, message: string]

type Case = { readonly id: string; readonly browser_only?: boolean }
type Suite = { readonly id: string; readonly tests: readonly Case[] }

/** The parts of the package's client that are used; it has no types. */
type Client = {
  makeCacheTest(test: Case): Promise<void>
  readonly testResults: Record<string, Result>
}
type Settings = {
  setFetch(call: unknown): void
  setBaseUrl(url: string): void
  setUseBrowserCache(used: boolean): void
}

const require = createRequire(import.meta.url)
const inPackage = createRequire(require.resolve('http-cache-tests/package.json'))
const load = async <Module>(path: string): Promise<Module> =>
  (await import(pathToFileURL(inPackage.resolve(path)).href)) as Module

/** The origin that answers as each test tells it to. */
export const startSuiteOrigin = async (): Promise<{
  readonly origin: string
  readonly program: RunningProcess
}> => {
  const port = await freePort()
  const program = startProcess(process.execPath, [inPackage.resolve('./server/server.mjs')], {
    env: { npm_config_port: String(port), npm_config_pidfile: '/dev/null', npm_config_protocol: 'http' },
  })
  const origin = `http://127.0.0.1:${port}`
  await untilReady(program, async () => {
    await fetch(`${origin}/state/none`)
  })
  return { origin, program }
}

/**
 * Tests that run at once; failed ones run again, and at last one by one: the tests measure seconds, and a busy machine must change
 * no verdict.
 */
const atOnce = [100, 10, 1]

/** Runs all tests, and again those of which another result is expected. */
export const runPublicSuite = async (
  base: string,
  expectedToFail: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Result>> => {
  const settings = await load<Settings>('./client/config.mjs')
  const client = await load<Client>('./client/test.mjs')
  const suites = await load<{ default: readonly Suite[] }>('./tests/index.mjs')
  settings.setFetch(inPackage('node-fetch'))
  settings.setBaseUrl(base)
  settings.setUseBrowserCache(false)
  const cases = suites.default.flatMap(({ tests }) => tests.filter((test) => test.browser_only !== true))

  const run = async (some: readonly Case[], max: number): Promise<void> => {
    for (const { id } of some) delete client.testResults[id]
    for (let i = 0; i < some.length; i += max) {
      await Promise.all(some.slice(i, i + max).map((test) => client.makeCacheTest(test)))
    }
  }
  const isSurprising = ({ id }: Case): boolean => (client.testResults[id] === true) === expectedToFail.has(id)
  let left: readonly Case[] = cases
  for (const max of atOnce) {
    await run(left, max)
    left = left.filter(isSurprising)
  }
  return new Map(Object.entries(client.testResults))
}
