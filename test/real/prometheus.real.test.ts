import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { dashboardFiles } from '../../dashboards/source/dashboards.ts'
import { pause } from '../support/origin.ts'
import { describeWith } from '../support/requirements.ts'
import { type MixedLoad, startMixedLoad } from './prometheus/mixed-load.ts'
import { type Prometheus, startPrometheus } from './prometheus/start-prometheus.ts'

type Query = readonly [where: string, expression: string]

type Dashboard = {
  readonly title: string
  readonly panels: readonly {
    readonly title: string
    readonly targets?: readonly { readonly expr: string }[]
  }[]
}

const panelQueries: readonly Query[] = [...dashboardFiles.values()].flatMap((text) => {
  const { title, panels } = JSON.parse(text) as Dashboard
  return panels.flatMap((panel) =>
    (panel.targets ?? []).map(({ expr }): Query => [`${title}: ${panel.title}`, expr]),
  )
})

/** As Grafana fills in its variables. */
const filledIn = (expression: string): string =>
  expression.replaceAll('$service', '.*').replaceAll('$__rate_interval', '20s')

const readRules = async (file: string) => {
  const { groups } = parse(await readFile(`dashboards/rules/${file}`, 'utf8')) as {
    groups: { rules: { record?: string; alert?: string; expr: string }[] }[]
  }
  return groups.flatMap(({ rules }) => rules)
}

/** Panels that have nothing to show here, and why. */
const quiet: Readonly<Record<string, string>> = {
  'Trellis runtime: Reloads': 'the configuration is not reloaded',
  'Trellis runtime: Last reload': 'the configuration is not reloaded',
  'Trellis runtime: Certificate': 'the public side speaks plain HTTP',
  'Trellis overview: Refused because of overload': 'there is no overload',
  'Trellis overview: Pressure': 'there is no overload',
  'Trellis overview: Rate limits, access and closed connections': 'there are neither limits nor access rules',
  'Trellis cache: Undeclared parameters': 'no request has any',
  'Trellis upstreams: Queue outcomes': 'no client is slow',
  'Trellis runtime: Workers': 'there is one process',
  'Trellis runtime: Workers ended': 'there is one process',
  'Trellis runtime: Spans, pushes and log lines': 'there is no collector',
  'Trellis cache: Change feeds': 'no service reports changes',
  'Trellis upstreams: Checked responses': 'no service has an OpenAPI document',
  'Trellis cache: Time since the last complete poll': 'no service reports changes',
  'Trellis cache: Changes and what they dropped': 'no service reports changes',
  'Trellis cache: Missed changes': 'no service reports changes',
  'Trellis cache: Processes that serve from memory': 'there is one process',
  'Trellis cache: Contact lost, cache dropped': 'there is one process',
  'Trellis cache: Wait of writes for other processes': 'there is one process',
  'Trellis cache: Receivers that are behind': 'no service has caches in front of the gateway',
  'Trellis cache: Purges sent': 'no service has caches in front of the gateway',
  'Trellis cache: Wait of writes for receivers': 'no service has caches in front of the gateway',
  'Trellis cache: Redis lookups': 'there is one process',
  'Trellis cache: Messages and failures': 'there is one process',
}

describeWith('promtool', 'a real Prometheus', () => {
  let load: MixedLoad
  let prometheus: Prometheus

  beforeAll(async () => {
    load = await startMixedLoad({})
    prometheus = await startPrometheus(load.gateway.adminAddress)
    for (let number = 0; number < 4; number += 1) await load.round(number)
    // A scrape that began when all was over.
    const over = Date.now() / 1000
    const scraped = async (): Promise<number> =>
      (await prometheus.query('min(timestamp(up == 1))'))[0]?.value ?? 0
    while ((await scraped()) <= over) await pause(50)
  })
  afterAll(async () => {
    await prometheus?.stop()
    await load?.close()
  })

  const one = async (expression: string): Promise<number> =>
    (await prometheus.query(expression))[0]?.value ?? 0

  test('every panel of every dashboard has data where there was traffic', async () => {
    const empty = async (): Promise<readonly string[]> => {
      const lines: string[] = []
      for (const [where, expression] of panelQueries) {
        // No service has WebSockets; their panel shows connections too.
        if (Object.keys(quiet).includes(where) || expression.includes('trellis_websockets_')) continue
        const samples = await prometheus.query(filledIn(expression))
        if (!samples.some(({ value }) => !Number.isNaN(value))) lines.push(`${where}: ${expression}`)
      }
      return lines
    }
    // A rate is there after two scrapes, what is recorded some time after that.
    await expect.poll(empty).toEqual([])
  })

  test('every rule is evaluated without an error, and recording rules have values', async () => {
    const recording = await readRules('trellis-recording.yml')
    for (const { record = '' } of recording) {
      await expect.poll(() => prometheus.query(record), { message: record }).not.toEqual([])
    }
    for (const { expr } of await readRules('trellis-alerts.yml')) await prometheus.query(expr)
    expect(await one('sum(prometheus_rule_evaluation_failures_total) or vector(0)')).toBe(0)
    // Its first scrape may have come before the gateway listened.
    await expect.poll(() => one('ALERTS{alertname="TrellisDown"} or vector(0)')).toBe(0)
  })

  test('the alert about a service without a healthy target holds for one whose only target is gone', async () => {
    const alerts = await readRules('trellis-alerts.yml')
    const { expr = '' } = alerts.find(({ alert }) => alert === 'TrellisNoTarget') ?? {}
    await expect
      .poll(async () => (await prometheus.query(expr)).map(({ metric }) => metric['service']))
      .toEqual(['down'])
  })

  test('counters are what clients and origins counted, to the request', async () => {
    for (const [service, count] of load.sent) {
      expect(await one(`sum(trellis_requests_total{service="${service}"})`), service).toBe(count)
    }
    for (const { origin, received } of [load.site, load.legacy, load.narrow]) {
      const attempts = `sum(trellis_upstream_attempts_total{target="${origin}"})`
      expect(await one(attempts), origin).toBe(received.length)
    }
    const refused = 'sum(trellis_protocol_refusals_total)'
    expect(await one(refused)).toBe(4)
  })

  test('promtool finds no fault in a scrape under load', async () => {
    const input = await (await fetch(`${load.gateway.adminAddress}/metrics`)).text()
    const found = execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8', stdio: 'pipe' })
    expect(found).toBe('')
  })
})
