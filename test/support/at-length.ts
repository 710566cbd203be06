import { test } from 'vitest'
import { isAll } from './breadth.ts'

/** A test that only the whole run has. In the short one it is not even registered: a skipped test needs a reason. */
export const testAtLength: (title: string, run: () => Promise<void>, timeoutMs?: number) => void = isAll
  ? test
  : () => undefined
