import { execFile } from 'node:child_process'
import { access, cp, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import type { Config } from '../../src/config/config.ts'
import { checkConfig } from '../../src/gateway/load-config.ts'
import { describeWith } from '../support/requirements.ts'

type Service = {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly volumes?: readonly string[]
  readonly ports?: readonly string[]
  readonly depends_on?: readonly string[] | Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly stop_grace_period?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly user?: string
}

const text = await readFile('compose.yaml', 'utf8')
const { services, volumes } = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: Readonly<Record<string, unknown>>
}
const named = Object.entries(services)

const serviceOf = (name: string): Service => {
  const service = services[name]
  if (service === undefined) throw new Error(`no service ${name}`)
  return service
}

/** `source:target:mode` of all mounts. */
const mountsOf = ({ volumes: lines = [] }: Service) =>
  lines.map((line) => {
    const [source = '', target = '', mode = 'rw'] = line.split(':')
    return { source, target, mode }
  })

/** Where a file of the container stands in this repository. */
const sourceOf = (service: Service, path: string): string => {
  const mount = mountsOf(service).find(({ target }) => path === target || path.startsWith(`${target}/`))
  if (mount === undefined) throw new Error(`${path} is not mounted`)
  return mount.source + path.slice(mount.target.length)
}

const trellisConfig = async (): Promise<Config> => {
  const { command = [] } = serviceOf('trellis')
  const file = sourceOf(serviceOf('trellis'), command[command.indexOf('-c') + 1] ?? '')
  const result = await checkConfig(await readFile(file, 'utf8'), { TRELLIS_ADMIN_TOKEN: 'token' })
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result.config
}

test('it starts WordPress, its database, the shared store, Prometheus and Grafana', () => {
  expect(Object.keys(services).sort()).toEqual(
    ['grafana', 'install', 'mariadb', 'prometheus', 'trellis', 'valkey', 'wordpress'].sort(),
  )
})

test.each(named)('%s: its image has a tag that names a release to the last number', (_name, { image }) => {
  expect(image).toMatch(/^[a-z0-9./-]+:(?:[a-z]+-)?v?\d+\.\d+\.\d+[a-z0-9.-]*$/)
})

test.each(named)('%s mounts existing files read-only, or named volumes', async (_name, service) => {
  for (const { source, mode } of mountsOf(service)) {
    if (!source.startsWith('./')) {
      expect(Object.keys(volumes)).toContain(source)
      continue
    }
    expect(mode).toBe('ro')
    await access(source)
  }
})

test.each(named)('%s: its ports are published on loopback, if at all', (_name, { ports = [] }) => {
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
})

test.each(named)(
  '%s waits for services that exist, with a health check or an end',
  (_name, { depends_on = {} }) => {
    if (Array.isArray(depends_on)) {
      for (const name of depends_on) serviceOf(name)
      return
    }
    for (const [name, { condition }] of Object.entries(depends_on)) {
      if (condition === 'service_healthy') expect(serviceOf(name).healthcheck).toBeDefined()
      else expect(condition).toBe('service_completed_successfully')
    }
  },
)

test('no port is taken twice', () => {
  const taken = named.flatMap(([, { ports = [] }]) => ports.map((port) => port.split(':')[1]))
  expect(new Set(taken).size).toBe(taken.length)
})

test('it starts without a variable being set', () => {
  // `$$` is for the shell within a container.
  const variables = [...text.replaceAll('$$', '').matchAll(/\$\{?(\w+)([^}]*)/g)]
  expect(variables.length).toBeGreaterThan(3)
  for (const [, , rest] of variables) expect(rest).toMatch(/^:-./)
})

test('trellis check finds no fault in its configuration, whose hosts are services of the file', async () => {
  const { services: configured, cache, listen, admin } = await trellisConfig()
  for (const { upstream } of configured) {
    expect([upstream.targets].flat().map((target) => new URL(target).hostname)).toEqual(['wordpress'])
  }
  expect(new URL(cache.shared.url.reveal()).hostname).toBe('valkey')
  expect([listen.host, admin.host]).toEqual(['0.0.0.0', '0.0.0.0'])
  expect(serviceOf('trellis').ports).toEqual([
    `127.0.0.1:8080:${listen.port}`,
    `127.0.0.1:9090:${admin.port}`,
  ])
})

test('the gateway has nothing to write to, no capabilities, and the time to drain', async () => {
  const { read_only, cap_drop, stop_grace_period } = serviceOf('trellis')
  expect({ read_only, cap_drop }).toEqual({ read_only: true, cap_drop: ['ALL'] })
  const { drain } = await trellisConfig()
  expect(Number.parseInt(stop_grace_period ?? '', 10) * 1000).toBeGreaterThan(drain.delayMs + drain.timeoutMs)
})

test('the shared memory evicts entries and not the ledger', () => {
  expect(serviceOf('valkey').command?.join(' ')).toContain('--maxmemory-policy volatile-lru')
})

test('WordPress and the program that installs it see one site and one database', () => {
  expect(serviceOf('install').environment).toMatchObject(serviceOf('wordpress').environment ?? {})
  expect(serviceOf('install').volumes).toEqual(serviceOf('wordpress').volumes)
})

test('Grafana uses the Prometheus of the file, and shows the folder of the dashboards', async () => {
  const grafana = serviceOf('grafana')
  const provisioned = async (file: string): Promise<unknown> =>
    parse(await readFile(sourceOf(grafana, `/etc/grafana/provisioning/${file}`), 'utf8'))
  const { datasources } = (await provisioned('datasources/prometheus.yaml')) as {
    datasources: { type: string; url: string }[]
  }
  expect(datasources.map(({ type }) => type)).toEqual(['prometheus'])
  expect(Object.keys(services)).toContain(new URL(datasources[0]?.url ?? '').hostname)
  const { providers } = (await provisioned('dashboards/trellis.yaml')) as {
    providers: { options: { path: string } }[]
  }
  await access(join(sourceOf(grafana, providers[0]?.options.path ?? ''), 'overview.json'))
  await access(sourceOf(grafana, grafana.environment?.['GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH'] ?? ''))
})

test('Prometheus scrapes the admin side of the gateway as the job that the rules look for', async () => {
  const { scrape_configs } = parse(await readFile('deploy/prometheus/prometheus.yml', 'utf8')) as {
    scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[]
  }
  const { admin } = await trellisConfig()
  expect(scrape_configs).toEqual([
    { job_name: 'trellis', static_configs: [{ targets: [`trellis:${admin.port}`] }] },
  ])
})

describeWith('promtool', 'the configuration of Prometheus', () => {
  test('promtool finds no fault in it, rules included', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-compose-'))
    for (const { source, target } of mountsOf(serviceOf('prometheus'))) {
      if (source.startsWith('./')) await cp(source, join(folder, target), { recursive: true })
    }
    const { stdout } = await promisify(execFile)('promtool', [
      ...['check', 'config', join(folder, 'etc/prometheus/prometheus.yml')],
    ])
    expect(stdout).toContain('2 rule files found')
  })
})
