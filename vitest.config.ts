import { defineConfig } from 'vitest/config'

/** May run beside each other: nothing in these depends on how fast the machine is, or only in bounds that a busy one keeps. */
const concurrent = ['conformance', 'contracts', 'gateway', 'phases', 'properties', 'structure', 'unit']

/** Each starts a WordPress, or several, and waits for it most of the time. */
const beforeWordPress = [
  'batch-differential',
  'differential-*',
  'discovery-*',
  'equivalence-oracle',
  'invalidation-matrix',
  'migration',
  'wordpress-clients',
].map((suite) => `test/real/${suite}.test.ts`)

export default defineConfig({
  test: {
    coverage: { provider: 'v8', include: ['src/**'], reporter: ['text-summary'] },
    projects: [
      {
        test: {
          name: 'concurrent',
          include: concurrent.map((folder) => `test/${folder}/**/*.test.ts`),
          testTimeout: 20_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'wordpress',
          include: beforeWordPress,
          testTimeout: 20_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'alone',
          include: ['test/**/*.test.ts'],
          exclude: [...concurrent.map((folder) => `test/${folder}/**`), ...beforeWordPress],
          testTimeout: 20_000,
          hookTimeout: 120_000,
          // Other programs run beside them: one after the other.
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
