import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isAll } from './test/support/breadth.ts'
import { useRunFolder } from './test/support/run-folder.ts'

useRunFolder()

/**
 * May run beside each other: nothing in these depends on how fast the machine is, or only in bounds that a busy one keeps. Nothing
 * of theirs outlives their test: they share processes, of which each loads the gateway once.
 */
const concurrent = [
  'conformance',
  'contracts',
  'exchange',
  'gateway',
  'packages',
  'properties',
  'structure',
  'unit',
]
const allConcurrent = concurrent.map((folder) => `test/${folder}/**/*.test.ts`)

/** Not part of `npm test`: these need a program beside Node, or measure something, */
const needProgram = [
  'gateway/admin-documentation-page',
  'gateway/admin-status-page',
  'gateway/bench-side-by-side',
  'gateway/hostile/secrets-of-peers',
  'properties/raw-requests',
  'structure/dashboards',
  'structure/deploy-compose',
  'structure/deploy-helm',
  'structure/deploy-systemd',
  'unit/observability/bounds',
  'unit/bench/*',
]
/** or take four seconds and more: they start processes, wait for timeouts, drains and slow clients, or have long tables. */
const takeLong = [
  'conformance/public-cache-suite',
  'gateway/access-keys',
  'gateway/access-log-options',
  'gateway/admin-diagnosis',
  'gateway/batch-fairness',
  'gateway/batch-idempotency',
  'gateway/changes',
  'gateway/changes-consistency',
  'gateway/changes-log',
  'gateway/companion-receipts',
  'gateway/cli-output',
  'gateway/cli-program',
  'gateway/cli-signals',
  'gateway/cli-watch',
  'gateway/descriptors',
  'gateway/downstream',
  'gateway/drain',
  'gateway/fault-matrix/*',
  'gateway/hostile/buffered-bytes',
  'gateway/hostile/change-*',
  'gateway/hostile/clock-jumps',
  'gateway/hostile/content-floods',
  'gateway/hostile/costly-*',
  'gateway/hostile/ends-of-bodies',
  'gateway/hostile/http2-*',
  'gateway/hostile/pipelined-tls',
  'gateway/hostile/raw-requests',
  'gateway/hostile/request-contents',
  'gateway/hostile/secrets',
  'gateway/hostile/turns-of-*',
  'gateway/hostile/unfinished-uploads',
  'gateway/installed-package',
  'gateway/large-contents',
  'gateway/random-targets',
  'gateway/pushed-metrics',
  'gateway/slow-clients',
  'gateway/slow-clients-and-slots',
  'gateway/stampede',
  'gateway/state-lines',
  'gateway/tracing',
  'gateway/transfers',
  'gateway/upstream-issues',
  'gateway/upstream-health',
  'gateway/verify',
  'gateway/worker-handover',
  'gateway/workers',
  'gateway/workers-*',
  'properties/*',
  'structure/layers',
  'structure/start-up',
  'unit/cache/bounded-memory',
  'unit/cache/counted-bytes',
  'unit/cache/invalidation',
  'unit/cluster/cluster-replies',
  'unit/cluster/damaged-replies',
  'unit/cluster/listener',
  'unit/gateway/parts/downstreams',
  'unit/request/**/bounded-cost',
]
const notQuick = [...needProgram, ...takeLong].map((suite) => `test/${suite}.test.ts`)

/** Each starts a WordPress, or several, which takes most of the time, or shows tasks of readers. */
const beforeWordPress = [
  'agency',
  'batch-differential',
  'companion-*',
  'compressed-pages',
  'differential-*',
  'discovery-*',
  'equivalence-oracle',
  'hit-ratio',
  'invalidation-matrix',
  'known-harmless-requests',
  'large-*',
  'method-overrides',
  'migration',
  'own-answers',
  'page-of-another-origin',
  'promise-fuzz',
  'quick-start',
  'reader-tasks',
  'real-sites',
  'renderings',
  'widened-arguments',
  'wordpress-clients',
].map((suite) => `test/real/${suite}.test.ts`)

/** Each waits most of the time for programs that it has started, with leases that outlast what a busy machine stands still. */
const waiting = [
  'changes-redis',
  'compose-config',
  'container',
  'promise-suite',
  'prometheus',
  'redis-access',
  'redis-cluster',
  'redis-cluster-moves',
  'redis-forged-entries',
  'redis-ledger-windows',
  'redis-model',
  'redis-ports',
  'redis-refused-writes',
  'redis-shared-tier',
  'redis-signed-entries',
  'redis-store-faults',
].map((suite) => `test/real/${suite}.test.ts`)

/** The longest files of their projects, each half a minute and more: they begin first, so that none is left alone at the end. */
const longest = [
  ...['real-sites', 'companion-cached-reads', 'companion-mariadb', 'companion-deaths', 'companion-writes'],
  ...['companion-faults', 'companion-import', 'companion-cost', 'companion-tags', 'companion-by-table'],
  ...['hit-ratio', 'companion-hit-ratio', 'invalidation-matrix', 'companion-matrix'],
  ...['companion-poll', 'promise-fuzz', 'batch-differential', 'renderings', 'companion-network'],
  ...['admin-status-page', 'installed-package', 'unfinished-uploads', 'change-logs', 'workers'],
  ...['fault-matrix', 'slow-clients-and-slots', 'transfers', 'cli-program', 'cli-output', 'costly-followers'],
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return at === -1 ? longest.length : at
    }
    return (await super.sort(files)).toSorted((one, other) => placeOf(one) - placeOf(other))
  }
}

/**
 * With every row of the long tables only (test/support/breadth.ts): minutes of downloads, of collecting garbage, and resident memory, which other programs
 * beside it raise. Without it they are not found even by their names.
 */
const onlyAmongAll = [
  'test/real/container.test.ts',
  'test/real/next.test.ts',
  'test/gateway/what-grows-old.test.ts',
  'test/long/memory-attacks.test.ts',
]
const exclude = isAll ? [] : onlyAmongAll

const ofAll = {
  setupFiles: 'test/support/own-fetch.ts',
  // A test says what comes about, not how fast the machine is: what is asked for again and again may take its time.
  testTimeout: 60_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary'] },
    projects: [
      {
        test: {
          name: 'quick',
          include: allConcurrent,
          exclude: [...exclude, ...notQuick],
          ...ofAll,
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'slow',
          include: notQuick,
          exclude,
          ...ofAll,
          isolate: false,
          // Most of them wait.
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'wordpress',
          include: beforeWordPress,
          exclude,
          ...ofAll,
          isolate: false,
          maxWorkers: 4,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'waiting',
          include: waiting,
          exclude,
          ...ofAll,
          // In the pool of `wordpress`: these wait while PHP works.
          maxWorkers: 4,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'alone',
          include: ['test/**/*.test.ts'],
          exclude: [
            ...exclude,
            ...concurrent.map((folder) => `test/${folder}/**`),
            ...beforeWordPress,
            ...waiting,
          ],
          ...ofAll,
          // Other programs run beside them: one after the other.
          maxWorkers: 1,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
