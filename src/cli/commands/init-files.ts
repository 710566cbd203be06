import { access, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { CliPorts, ExitReason } from '../cli-ports.ts'

/** A file or folder of the package, and its name in the folder that the command names. */
type Copied = {
  readonly from: string
  readonly to: string
  readonly change?: (text: string, folder: string) => string
}

type FileSet = { readonly files: readonly Copied[]; readonly next: readonly string[] }

const same = (name: string): Copied => ({ from: name, to: name })

/** The image of the package itself, in place of the one that a checkout builds. */
const imageOfPackage = (text: string): string =>
  text
    .slice(text.lastIndexOf('\nFROM ') + 1)
    .split('\n')
    .filter((line) => !line.startsWith('COPY '))
    .join('\n')
    .replace('WORKDIR /app\n', 'WORKDIR /app\nCOPY trellis ./\n')

/** The unit for this installation: where its program is, and the Node that runs it. */
const unitOfPackage = (text: string, folder: string): string =>
  text.replaceAll('/opt/trellis', folder).replaceAll('=/usr/bin/node ', `=${process.execPath} `)

const fileSets = {
  companion: {
    files: [
      { from: 'deploy/wordpress/trellis.php', to: 'trellis.php' },
      { from: 'deploy/wordpress/README.md', to: 'README.md' },
    ],
    next: [
      'copy trellis.php to wp-content/mu-plugins/ of the WordPress',
      'README.md says what to define in wp-config.php, and what to set in trellis.yaml',
    ],
  },
  dashboards: {
    files: [
      ...['batch', 'cache', 'overview', 'runtime', 'upstreams'].map((name) => `${name}.json`),
      ...['alerts', 'recording'].map((name) => `rules/trellis-${name}.yml`),
    ].map((name) => ({ from: `dashboards/${name}`, to: name })),
    next: [
      'import the *.json files into Grafana (Dashboards, New, Import)',
      'name rules/*.yml under rule_files of prometheus.yml; the job that scrapes Trellis is named trellis',
    ],
  },
  systemd: {
    files: [{ from: 'deploy/systemd/trellis.service', to: 'trellis.service', change: unitOfPackage }],
    next: [
      'install -D -m 644 trellis.service /etc/systemd/system/trellis.service',
      'the configuration is /etc/trellis/gateway.yaml, the token of the admin side /etc/trellis/admin-token',
      'systemctl daemon-reload && systemctl enable --now trellis',
    ],
  },
  compose: {
    files: [
      ...['package.json', 'dist', 'config', 'contracts', 'public'].map((name) => ({
        from: name,
        to: `trellis/${name}`,
      })),
      { from: 'Dockerfile', to: 'Dockerfile', change: imageOfPackage },
      ...['compose.yaml', 'deploy/compose', 'deploy/prometheus', 'deploy/grafana', 'dashboards'].map(same),
    ],
    next: ['docker compose up --build', 'the top of compose.yaml has the addresses and passwords'],
  },
} satisfies Readonly<Record<string, FileSet>>

export type FileSetName = keyof typeof fileSets

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** What only a checkout has: sources of dashboards, maps of code, and the cache of a start. */
const isPublished = (path: string): boolean => !/dashboards\/source|\.map$|compile-cache/.test(path)

/** Emptied at a start, or caches of npx: a unit that begins a program there does not survive. */
const volatileFolder = /^\/(?:private\/)?(?:var\/)?(?:tmp|run|dev\/shm)\/|\/_npx\//

/** Writes files of the package into a folder; what is there already is replaced only with `force`. */
export const writeFileSet = async (
  { packageFolder, stdout, stderr }: Pick<CliPorts, 'packageFolder' | 'stdout' | 'stderr'>,
  name: FileSetName,
  folder: string,
  force: boolean,
): Promise<ExitReason> => {
  const root = resolve(fileURLToPath(packageFolder))
  const { files, next }: FileSet = fileSets[name]
  for (const { to } of force ? [] : files)
    if (await exists(join(folder, to))) {
      stderr.write(`trellis: ${join(folder, to)} exists already; --force replaces it\n`)
      return 'fileExists'
    }
  try {
    for (const { from, to, change } of files) {
      const [source, target] = [join(root, from), join(folder, to)]
      await mkdir(dirname(target), { recursive: true })
      if (change === undefined) await cp(source, target, { recursive: true, filter: isPublished })
      else await writeFile(target, change(await readFile(source, 'utf8'), root))
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    stderr.write(`trellis: ${folder} cannot be written (${code ?? message})\n`)
    return 'fileExists'
  }
  if (name === 'systemd' && volatileFolder.test(root))
    stdout.write(
      `Warning: the unit runs Trellis from ${root}, which a restart of the machine empties; install it elsewhere, e.g. npm install -g, and write the unit again.\n`,
    )
  stdout.write(`Files written to ${resolve(folder)}. Next:\n${next.map((step) => `  ${step}\n`).join('')}`)
  return 'ok'
}
