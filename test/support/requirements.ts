import { spawnSync } from 'node:child_process'
import { describe } from 'vitest'

type Requirement = {
  /** Exit code 0 means installed. */
  readonly probe: readonly [command: string, ...args: string[]]
  readonly packages: readonly string[]
}

/** Programs from Debian that some suites need beside Node. `.ci/run` installs every package named here. */
export const requirements = {
  curl: { probe: ['curl', '--version'], packages: ['curl'] },
  php: {
    probe: [
      'sh',
      '-c',
      'command -v unzip && m=$(php -m) && for x in pdo_sqlite sqlite3 dom mbstring gd; do echo "$m" | grep -qix $x || exit 1; done',
    ],
    packages: ['php-cli', 'php-sqlite3', 'php-xml', 'php-mbstring', 'php-gd', 'unzip'],
  },
  mariadb: {
    probe: [
      'sh',
      '-c',
      'PATH=$PATH:/usr/sbin; command -v nginx && command -v php-fpm8.2 && command -v mariadbd && m=$(php -m) && for x in mysqli pdo_mysql curl redis; do echo "$m" | grep -qix $x || exit 1; done',
    ],
    packages: ['nginx-light', 'php8.2-fpm', 'php8.2-mysql', 'php8.2-curl', 'php-redis', 'mariadb-server'],
  },
  promtool: { probe: ['sh', '-c', 'command -v promtool'], packages: ['prometheus'] },
  chromium: {
    probe: ['/usr/bin/chromium-headless-shell', '--version'],
    packages: ['chromium-headless-shell'],
  },
  redis: { probe: ['sh', '-c', 'command -v redis-server'], packages: ['redis-server'] },
  nginx: { probe: ['sh', '-c', 'PATH=$PATH:/usr/sbin command -v nginx'], packages: ['nginx-light'] },
  varnish: {
    probe: [
      'sh',
      '-c',
      'PATH=$PATH:/usr/sbin command -v varnishd && ls /usr/lib/*/varnish/vmods/libvmod_xkey.so',
    ],
    packages: ['varnish', 'varnish-modules', 'gcc', 'libc6-dev'],
  },
  systemd: { probe: ['sh', '-c', 'command -v systemd-analyze'], packages: ['systemd'] },
  go: {
    probe: ['sh', '-c', 'command -v go && test -d /usr/share/gocode/src/github.com/Masterminds/sprig'],
    packages: ['golang-go', 'golang-github-masterminds-sprig-dev', 'golang-github-ghodss-yaml-dev'],
  },
  wrk: { probe: ['sh', '-c', 'command -v wrk'], packages: ['wrk'] },
} as const satisfies Record<string, Requirement>

export type RequirementName = keyof typeof requirements

/** Is the program there? */
function isInstalled(name: RequirementName): boolean {
  const [command, ...args] = requirements[name].probe
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0
}

/** The command that installs what is needed. */
function installCommand(name: RequirementName): string {
  return `apt-get install -y --no-install-recommends ${requirements[name].packages.join(' ')}`
}

/**
 * `describe` for a suite that needs a program: without it the suite is reported as skipped, with the command that
 * installs it. In CI everything is installed, so there a missing program is a failure.
 */
export function describeWith(name: RequirementName, title: string, body: () => void): void {
  if (isInstalled(name)) {
    describe(title, body)
    return
  }
  const reason = `needs ${name}: ${installCommand(name)}`
  if (process.env['CI']) throw new Error(`${title} ${reason}`)
  process.stderr.write(`skipped: ${title} ${reason}\n`)
  describe.skip(`${title} (${reason})`, body)
}
