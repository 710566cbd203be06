import type { Scenario } from '../scenarios.ts'

/** Targets of the file-like scenarios: the same for every peer that asks the origin itself. */
export const fileTargets = {
  hit: '/files/list',
  'hit-20k': '/files/20k',
  'hit-192k': '/files/192k',
  'hit-192k-gzip': '/files/192k',
  'not-modified': '/files/list',
  miss: '/files/new/',
  zipf: '/files/item/',
  mixed: '/files/item/',
} as const satisfies Partial<Record<Scenario, string>>

/** Targets that every cache bypasses. */
export const plainTargets = {
  pass: '/plain/list',
  upload: '/plain/upload',
  write: '/plain/write',
} as const satisfies Partial<Record<Scenario, string>>
