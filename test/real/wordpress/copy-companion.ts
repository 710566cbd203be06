import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The plugin that reports changes to gateways. */
export const companionFile = join(
  dirname(fileURLToPath(import.meta.url)),
  '../../../deploy/wordpress/trellis.php',
)

const limit = /const LIMIT_MS = (\d+);/

/** A push is given up after 300 ms, which a busy machine may need: tests that do not ask for it wait longer. */
export const patientPushes = { TRELLIS_PUSH_LIMIT_MS: '20000' } as const

/** As it is shipped, but that TRELLIS_PUSH_LIMIT_MS in the environment replaces the limit of a push. */
export async function copyCompanion(site: string): Promise<void> {
  const shipped = await readFile(companionFile, 'utf8')
  const limitMs = limit.exec(shipped)?.[1]
  if (limitMs === undefined) throw new Error('the companion has no limit of a push')
  const plugins = join(site, 'wp-content/mu-plugins')
  await mkdir(plugins, { recursive: true })
  const setting = `define( 'TRELLIS_PUSH_LIMIT', (int) ( getenv( 'TRELLIS_PUSH_LIMIT_MS' ) ?: ${limitMs} ) );`
  const text = shipped
    .replace('<?php', `<?php ${setting}`)
    .replace(limit, 'const LIMIT_MS = TRELLIS_PUSH_LIMIT;')
  await writeFile(join(plugins, 'trellis.php'), text)
}
