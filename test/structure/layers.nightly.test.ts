import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
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
    const argv = [cruiser, '--config', '.dependency-cruiser.cjs', '--output-type', 'json', 'src', 'demo']
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

type Rule = {
  readonly name: string
  readonly from: { readonly path?: string; readonly pathNot?: string | readonly string[] }
}

/** Files that break one rule each: path, content, the rule that must fire. */
const faults: readonly (readonly [string, string, string])[] = [
  ['src/cache/fault.ts', "import '../upstream/upstream.ts'", 'cache-imports-downward'],
  ['src/service/fault.ts', "import '../exchange/handle.ts'", 'service-imports-downward'],
  ['src/wordpress/fault.ts', "import '../exchange/handle.ts'", 'wordpress-imports-downward'],
  ['src/openapi/fault.ts', "import '../exchange/handle.ts'", 'openapi-imports-downward'],
  [
    'src/openapi/fault-2.ts',
    "import '../wordpress/arguments/php-query.ts'",
    'wordpress-is-a-contract-module',
  ],
  ['src/wordpress/fault-2.ts', "import '../openapi/document/operation.ts'", 'openapi-is-a-contract-module'],
  ['src/cache/fault-4.ts', "import '../wordpress/arguments/php-query.ts'", 'wordpress-is-a-contract-module'],
  ['src/upstream/fault.ts', "import '../config/load.ts'", 'upstream-imports-downward'],
  ['src/config/fault.ts', "import '../cache/cache.ts'", 'config-imports-downward'],
  [
    'src/exchange/fault.ts',
    "import type { Batch } from '../batch/batch.ts'\nexport type A = Batch",
    'exchange-imports-downward',
  ],
  ['src/batch/fault.ts', "import '../server/server.ts'", 'batch-imports-downward'],
  ['src/server/fault.ts', "import '../cluster/coherence.ts'", 'server-imports-downward'],
  ['src/cluster/fault.ts', "import '../observability/metrics.ts'", 'cluster-imports-downward'],
  ['src/observability/fault.ts', "import '../admin/server.ts'", 'observability-imports-downward'],
  ['src/admin/fault.ts', "import '../gateway/explain.ts'", 'admin-imports-downward'],
  ['src/gateway/fault.ts', "import '../gateway.ts'", 'gateway-imports-downward'],
  ['src/gateway/fault-2.ts', "import '../gateway.ts'", 'only-the-top-imports-the-top'],
  ['src/http/fault.ts', "import '../errors.ts'", 'http-imports-itself'],
  ['src/cli/fault.ts', "import '../gateway.ts'", 'cli-imports-config'],
  ['src/exchange/fault-2.ts', "import '../cache/fetch/collapse.ts'", 'subfolders-of-cache-are-private'],
  ['src/gateway/fault-3.ts', "import '../batch/send/upstream-batch.ts'", 'subfolders-of-batch-are-private'],
  ['src/gateway/fault-4.ts', "import '../cluster/redis/tier.ts'", 'subfolders-of-cluster-are-private'],
  ['src/cache/fault-2.ts', "import 'ioredis'", 'ioredis-has-one-home'],
  ['src/service/fault-2.ts', "import '@opentelemetry/api'", 'opentelemetry-has-one-home'],
  ['src/cache/fault-3.ts', "import 'undici'", 'undici-has-one-home'],
  ['src/service/fault-3.ts', "import 'prom-client'", 'prom-client-has-one-home'],
  ['src/wordpress/fault-3.ts', "import 'fastify'", 'fastify-has-one-home'],
  ['src/upstream/fault-2.ts', "import 'lru-cache'", 'lru-cache-has-one-home'],
  ['demo/fault.ts', "import 'zod'", 'zod-has-one-home'],
  ['demo/fault-2.ts', "import '../src/config/load.ts'", 'demo-imports-what-every-service-needs'],
  ['demo/fault-3.ts', "import '../src/cache/fetch/collapse.ts'", 'subfolders-of-cache-are-private'],
  ['src/gateway/fault-5.ts', "import '../../demo/site.ts'", 'gateway-loads-the-demo-when-it-is-used'],
  ['src/gateway-fault.ts', "void import('../demo/site.ts')", 'only-gateway-loads-the-demo'],
  ['src/admin/fault-2.ts', "import '@fastify/http-proxy'", 'fastifyhttp-proxy-has-one-home'],
  ['src/wordpress/fault-4.ts', "import 'jose'", 'jose-has-one-home'],
]

describe('layers', () => {
  let copy: string
  beforeAll(async () => {
    copy = await mkdtemp(join(tmpdir(), 'trellis-layers-'))
    for (const name of ['src', 'demo', 'package.json', 'tsconfig.json', '.dependency-cruiser.cjs']) {
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

  test('each file that may import a contract module does so', async () => {
    const rules: { forbidden: readonly Rule[] } = await import('../../.dependency-cruiser.cjs')
    const contractRules = rules.forbidden.filter(({ name }) => name.endsWith('-is-a-contract-module'))
    expect(contractRules.map(({ name }) => name)).toEqual([
      'wordpress-is-a-contract-module',
      'openapi-is-a-contract-module',
      'graphql-is-a-contract-module',
    ])
    for (const { name, from } of contractRules) {
      const contract = name.replace('-is-a-contract-module', '')
      const files = [from.pathNot ?? []].flat().filter((path) => path.endsWith('.ts$'))
      for (const file of files) {
        const path = file.slice(1, -1).replaceAll('\\', '')
        expect(await readFile(join(root, path), 'utf8'), path).toMatch(new RegExp(`'[./]*/${contract}/`))
      }
    }
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
