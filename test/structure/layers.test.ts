import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
const cruiser = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs')

type Report = {
  readonly summary: {
    readonly totalCruised: number
    readonly violations: readonly { readonly rule: { readonly name: string }; readonly from: string }[]
  }
}

const cruise = (folder: string): Promise<Report> =>
  new Promise((resolve, reject) => {
    const argv = [cruiser, '--config', '.dependency-cruiser.cjs', '--output-type', 'json', 'src']
    // Ends with a code that counts the violations, so only unreadable output is a failure here.
    execFile(
      process.execPath,
      argv,
      { cwd: folder, maxBuffer: 64 * 1024 * 1024 },
      (_error, stdout, stderr) => {
        try {
          resolve(JSON.parse(stdout) as Report)
        } catch {
          reject(new Error(stderr))
        }
      },
    )
  })

/** Files that break one rule each: path, content, the rule that must fire. */
const faults: readonly (readonly [string, string, string])[] = [
  ['src/cache/fault.ts', "import '../upstream/upstream.ts'", 'cache-stays-in-its-room'],
  [
    'src/batch/fault.ts',
    "import type { Row } from '../validation/issue.ts'\nexport type A = Row",
    'batch-stays-in-its-room',
  ],
  ['src/routing/fault.ts', "import '../pipeline/run.ts'", 'routing-stays-in-its-room'],
  ['src/contracts/fault.ts', "import '../clock.ts'", 'contracts-import-nothing'],
  ['src/http/fault.ts', "import '../errors.ts'", 'http-imports-itself'],
  ['src/pipeline/fault.ts', "import '../edge/server.ts'", 'pipeline-imports-fronts-and-base'],
  ['src/edge/fault.ts', "import '../cache/cache.ts'", 'edge-imports-pipeline-and-base'],
  ['src/metrics/fault.ts', "import '../cache/cache.ts'", 'metrics-imports-events'],
  ['src/tracing/fault.ts', "import '../pipeline/run.ts'", 'tracing-and-logging-see-exchanges'],
  ['src/validation/fault.ts', "import '@opentelemetry/api'", 'opentelemetry-has-one-home'],
  ['src/config/fault.ts', "import '../routing/router.ts'", 'config-imports-base'],
  ['src/cli/fault.ts', "import '../gateway.ts'", 'cli-imports-config'],
  ['src/tags/fault.ts', "import 'undici'", 'undici-has-one-home'],
  ['src/openapi/fault.ts', "import '../routing/router.ts'", 'openapi-stays-in-its-room'],
  ['src/names/fault.ts', "import 'prom-client'", 'prom-client-has-one-home'],
  ['src/discovery/fault.ts', "import 'fastify'", 'fastify-has-one-home'],
  ['src/upstream/fault.ts', "import 'lru-cache'", 'lru-cache-has-one-home'],
  ['src/demo/fault.ts', "import 'zod'", 'zod-has-one-home'],
  ['src/lifecycle/fault.ts', "import '@fastify/cors'", 'fastifycors-has-one-home'],
  ['src/overload/fault.ts', "import '../edge/listener.ts'", 'overload-stays-in-its-room'],
  ['src/coherence/fault.ts', "import '../cache/cache.ts'", 'coherence-stays-in-its-room'],
  ['src/workers/fault.ts', "import '../cache/cache.ts'", 'workers-stays-in-its-room'],
  ['src/shared-tier/fault.ts', "import '../coherence/coherence.ts'", 'shared-tier-stays-in-its-room'],
  ['src/cache/fault-2.ts', "import 'ioredis'", 'ioredis-has-one-home'],
]

describe('layers', () => {
  let copy: string
  beforeAll(async () => {
    copy = await mkdtemp(join(tmpdir(), 'trellis-layers-'))
    for (const name of ['src', 'package.json', 'tsconfig.json', '.dependency-cruiser.cjs']) {
      await cp(join(root, name), join(copy, name), { recursive: true })
    }
    await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
  })
  afterAll(() => rm(copy, { recursive: true, force: true }))

  test('every import goes one way, and the check saw the modules', async () => {
    const { summary } = await cruise(root)
    expect(summary.violations).toEqual([])
    // With a compiler that it cannot use, the tool sees no TypeScript at all and reports success.
    expect(summary.totalCruised).toBeGreaterThan(250)
  })

  test('a planted fault fires each rule', async () => {
    for (const [path, content] of faults) {
      await mkdir(dirname(join(copy, path)), { recursive: true })
      await writeFile(
        join(copy, path.replace('fault', `fault-${faults.findIndex(([p]) => p === path)}`)),
        `${content}\n`,
      )
    }
    const { summary } = await cruise(copy)
    const fired = new Set(
      summary.violations.filter(({ from }) => from.includes('fault-')).map(({ rule }) => rule.name),
    )
    expect([...fired]).toEqual(expect.arrayContaining(faults.map(([, , rule]) => rule)))
  })
})
