import { stringify } from 'yaml'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { type Gateway, startGateway } from '../../src/gateway.ts'
import { freePort } from './ports.ts'

/** A gateway inside the test's process, on free ports, silent and without a drain delay. */
export type TestGateway = Gateway & {
  /** First value other than 0 of a metric whose name and labels contain all the texts; 0 when there is none. */
  metric(...texts: readonly string[]): Promise<number>
  /** Puts another configuration where the gateway reads its own from, and has it read. */
  put(config: Tree): ReturnType<Gateway['reload']>
  /** Puts it there, and has nobody read it; a text stands as it is. */
  write(config: Tree | string): void
}

type Tree = { readonly [key: string]: unknown }

type Ports = { readonly listen: number; readonly admin: number }

const fileOf = (config: Tree, ports: Ports): string =>
  stringify({
    log: { level: 'silent' },
    drain: { delay: '0ms', timeout: '5s' },
    // A machine that is busy with other tests is no overload of the gateway under test.
    overload: { eventLoopDelay: '0s' },
    ...config,
    // Never the default ports: files run beside each other.
    listen: { port: ports.listen, ...(config['listen'] as object | undefined) },
    admin: { port: ports.admin, ...(config['admin'] as object | undefined) },
  })

/** Starts a gateway from a configuration as it would stand in a file. */
export const startTestGateway = async (config: Tree): Promise<TestGateway> => {
  // With port 0 another process may take the port that the gateway has found before it listens.
  const ports = { listen: await freePort(), admin: await freePort() }
  let text = fileOf(config, ports)
  const checked = await checkConfig(text, {})
  if (checked.kind === 'faults') {
    throw new Error(checked.faults.map(({ path, message }) => `${path}: ${message}`).join('\n'))
  }
  const gateway = await startGateway(checked.config, {
    configHash: checked.hash,
    version: 'test',
    readConfig: () => checkConfig(text, {}),
  })
  const metric = async (...texts: readonly string[]): Promise<number> => {
    const response = await fetch(`${gateway.adminAddress}/metrics`, {
      headers: { 'Accept-Encoding': 'identity' },
    })
    const lines = (await response.text()).split('\n')
    return lines
      .filter((one) => !one.startsWith('#') && texts.every((text) => one.includes(text)))
      .reduce((found, line) => found || Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  }
  const write: TestGateway['write'] = (other) => {
    text = typeof other === 'string' ? other : fileOf(other, ports)
  }
  const put: TestGateway['put'] = (other) => {
    write(other)
    return gateway.reload()
  }
  return { ...gateway, metric, put, write }
}

/** A site service in front of a scripted origin that speaks WordPress's names. */
export const siteService = (origin: string, more: Tree = {}): Tree => ({
  contract: 'site',
  mount: '/index.php/site-json',
  // The origin of a test plays no site index.
  discovery: { source: 'static', identity: { name: 'Test site' } },
  upstream: { targets: [origin], basePath: '/index.php/wp-json' },
  ...more,
})

/** Sends a batch to the site service of `siteService`. */
export const postBatch = (
  gateway: Pick<Gateway, 'publicAddress'>,
  body: { readonly requests: unknown } & Tree,
  headers: Readonly<Record<string, string>> = {},
  signal?: AbortSignal,
): Promise<Response> =>
  fetch(`${gateway.publicAddress}/index.php/site-json/batch/v1`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  })
