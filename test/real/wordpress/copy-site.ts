import { execFile } from 'node:child_process'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Code, thousands of files that nobody writes into: in a copy of a site they are hard links. */
const code = ['wp-admin', 'wp-includes', 'plugins', 'themes']

/** Copies a built site: its folder, with `site` and the database in it. */
export async function copySite(from: string, into: string): Promise<void> {
  await mkdir(join(into, 'site/wp-content'), { recursive: true })
  const isLinkable = (await stat(from)).dev === (await stat(into)).dev
  for (const folder of ['.', 'site', 'site/wp-content']) {
    const names = (await readdir(join(from, folder))).filter((name) => !['site', 'wp-content'].includes(name))
    const isLinked = (name: string): boolean => isLinkable && code.includes(name)
    for (const [how, some] of [
      ['-rl', names.filter(isLinked)],
      ['-r', names.filter((name) => !isLinked(name))],
    ] as const) {
      if (some.length === 0) continue
      const sources = some.map((name) => join(from, folder, name))
      await run('cp', [how, '--sparse=always', ...sources, join(into, folder)])
    }
  }
}
