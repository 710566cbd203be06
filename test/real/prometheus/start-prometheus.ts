import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/ports.ts'
import { startProcess, untilReady } from '../../support/processes.ts'

/** One series of a response. */
export type Sample = { readonly metric: Readonly<Record<string, string>>; readonly value: number }

/** A real Prometheus with the rules of dashboards/rules, scraping one address four times a second. */
export type Prometheus = {
  /** Throws what Prometheus finds wrong with the expression. */
  query(expression: string): Promise<readonly Sample[]>
  /** Exemplars of the last minute, by their labels. */
  exemplars(expression: string): Promise<readonly Readonly<Record<string, string>>[]>
  stop(): Promise<void>
}

type Reply = {
  readonly status: string
  readonly error?: string
  readonly data: {
    readonly resultType: string
    readonly result: readonly {
      readonly metric: Record<string, string>
      readonly value: readonly [number, string]
    }[]
  }
}

const settings = (target: string): string => `
global: { scrape_interval: 250ms, evaluation_interval: 250ms }
rule_files: [rules/trellis-recording.yml, rules/trellis-alerts.yml]
scrape_configs:
  - job_name: trellis
    static_configs: [{ targets: ["${target}"] }]
`

const writeSettings = async (folder: string, target: string): Promise<void> => {
  await cp('dashboards/rules', join(folder, 'rules'), { recursive: true })
  const recording = join(folder, 'rules/trellis-recording.yml')
  // A test has no half minute to wait for each evaluation.
  await writeFile(recording, (await readFile(recording, 'utf8')).replace('interval: 30s', 'interval: 250ms'))
  await writeFile(join(folder, 'prometheus.yml'), settings(target))
}

/** Starts Prometheus in its own folder and waits until it has scraped: it looks for its targets up to five seconds after it answers. */
export const startPrometheus = async (scraped: string): Promise<Prometheus> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-prometheus-'))
  await writeSettings(folder, new URL(scraped).host)
  const origin = `http://127.0.0.1:${await freePort()}`
  const program = startProcess('prometheus', [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${new URL(origin).host}`,
    '--enable-feature=exemplar-storage',
    '--log.level=warn',
  ])
  await untilReady(program, async () => {
    const response = await fetch(`${origin}/-/ready`)
    await response.arrayBuffer()
    if (!response.ok) throw new Error(`/-/ready: ${response.status}`)
    const { data } = (await (await fetch(`${origin}/api/v1/query?query=up==1`)).json()) as Reply
    if (data.result.length === 0) throw new Error('nothing is scraped yet')
  })
  return {
    query: async (expression) => {
      const response = await fetch(`${origin}/api/v1/query?query=${encodeURIComponent(expression)}`)
      const { status, error, data } = (await response.json()) as Reply
      if (status !== 'success') throw new Error(`${expression}: ${error}`)
      return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    exemplars: async (expression) => {
      const now = Date.now() / 1000
      const span = `start=${now - 60}&end=${now + 1}`
      const response = await fetch(
        `${origin}/api/v1/query_exemplars?query=${encodeURIComponent(expression)}&${span}`,
      )
      const { data } = (await response.json()) as {
        readonly data: readonly {
          readonly exemplars: readonly { readonly labels: Record<string, string> }[]
        }[]
      }
      return data.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels))
    },
    stop: async () => {
      await program.stop(5_000)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
