import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const german = join(dirname(fileURLToPath(import.meta.url)), 'batch-german.php')

/** `mo`: as gettext has it, read and taken apart for each request. `php`: as an array that opcache keeps. */
export type LanguageForm = 'mo' | 'php'

/**
 * Makes a site German, with the texts of Debian's package: those of WordPress 6.1, of which 6.7 still has most. The package is
 * unpacked, not installed.
 */
export async function makeGerman(site: string, form: LanguageForm, env: NodeJS.ProcessEnv): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-german-'))
  try {
    await run('apt-get', ['download', 'wordpress-l10n'], { cwd: folder })
    await run('sh', ['-c', 'dpkg-deb -x wordpress-l10n_*.deb .'], { cwd: folder })
    const languages = join(site, 'wp-content/languages')
    await mkdir(languages, { recursive: true })
    await cp(join(folder, 'usr/share/wordpress/wp-content/languages/de_DE.mo'), join(languages, 'de_DE.mo'))
    await run('php', [german, site, form], { env })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
