import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { CompanionSite, PhpOutcome } from './site.ts'

/** Runs PHP that calls `pause()` once, and resolves when it does; `go` lets it go on, and resolves at its end. */
export const pausedScript = async (
  { site, php }: Pick<CompanionSite, 'site' | 'php'>,
  code: string,
): Promise<{ go(): Promise<PhpOutcome> }> => {
  const marker = join(site, 'wp-content', `paused-${randomUUID()}`)
  const ended = php(
    `function pause() { touch( '${marker}' ); while ( file_exists( '${marker}' ) ) { usleep( 20000 ); clearstatcache(); } } ${code}`,
  )
  await expect.poll(() => existsSync(marker)).toBe(true)
  return {
    go: async () => {
      await rm(marker)
      return ended
    },
  }
}
