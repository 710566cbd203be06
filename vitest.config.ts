import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { isAll } from './test/support/breadth.ts'
import { LongestFirst } from './test/support/longest-first.ts'
import { useRunFolder } from './test/support/run-folder.ts'

useRunFolder()

/**
 * The end of its name says what a test file needs, CONTRIBUTING.md what that means: `.real` other programs, `.long` seconds,
 * `.nightly` minutes, or a machine of its own. Without one it is part of `npm test`.
 */
const filesOf = (ending: string): string => `test/**/*.${ending}.test.ts`

/** Clients in numbers, and turns of the event loop: what is measured there has a processor of its own. */
const load = 'test/load/**/*.test.ts'

const project = (
  name: string,
  place: { readonly order: number; readonly workers: number },
  files: { readonly include: string[]; readonly exclude?: string[] },
): TestProjectInlineConfiguration => ({
  test: {
    name,
    exclude: [],
    ...files,
    setupFiles: 'test/support/own-fetch.ts',
    // A test says what comes about, not how fast the machine is: what is asked for again and again may take its time.
    testTimeout: 180_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    // Nothing of theirs outlives their test: they share processes, of which each loads the gateway once.
    isolate: false,
    maxWorkers: place.workers,
    sequence: { groupOrder: place.order },
  },
})

export default defineConfig({
  test: {
    // Transformed once for all projects and runs.
    experimental: { fsModuleCache: true },
    sequence: { sequencer: LongestFirst },
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary'] },
    projects: [
      project(
        'quick',
        { order: 0, workers: 3 },
        {
          include: ['test/**/*.test.ts'],
          exclude: ['long', 'real', 'nightly'].map(filesOf),
        },
      ),
      // Most of both wait: for timeouts, drains and slow clients, for PHP and Redis. One project, since each has its own workers.
      project(
        'long and real',
        { order: 1, workers: 6 },
        { include: [filesOf('long'), filesOf('real')], exclude: [load] },
      ),
      project('load', { order: 2, workers: 2 }, { include: [load], exclude: [filesOf('nightly')] }),
      // Not even found by its name where only a part of the tests runs.
      ...(isAll ? [project('nightly', { order: 3, workers: 1 }, { include: [filesOf('nightly')] })] : []),
    ],
  },
})
