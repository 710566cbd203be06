import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { transform } from 'esbuild'
import { type RunningProcess, startProcess, untilReady } from '../../support/processes.ts'

const run = promisify(execFile)
const packageFolder = fileURLToPath(new URL('../../../packages/next', import.meta.url))
const react = ['react@19.3.1', 'react-dom@19.3.1']
const types = ['typescript@5.9.3', '@types/react@19', '@types/node@20']

export const newestNext = '16.4.6'
export const secret = 'secret-of-next'

type NextSiteOptions = {
  readonly version: string
  /** TypeScript by path. */
  readonly files: Readonly<Record<string, string>>
  /** Checked by the build as well. Without it the build takes half of the processor time. */
  readonly checksTypes: boolean
}

const plain = async (name: string, text: string): Promise<readonly [string, string]> => {
  if (!/\.tsx?$/.test(name)) return [name, text]
  const { code } = await transform(text, { loader: 'tsx', jsx: 'preserve' })
  return [name.replace(/\.ts(x?)$/, '.js$1'), code]
}

/** A site of Next.js in a folder of its own: its build, and the processes that serve it. */
export class NextSite {
  readonly folder: string
  readonly #running = new Set<RunningProcess>()

  private constructor(folder: string) {
    this.folder = folder
  }

  /** Installs Next.js and `@trellis/next` from the package that users make of it. */
  static async install({ version, files, checksTypes }: NextSiteOptions): Promise<NextSite> {
    const folder = await mkdtemp(join(tmpdir(), 'trellis-next-'))
    const site = new NextSite(folder)
    const pack = ['pack', '--silent', '--pack-destination', folder, packageFolder]
    const { stdout: tarball } = await run('npm', pack)
    await site.write({ 'package.json': '{"private":true}' })
    for (const [name, text] of Object.entries(files))
      await site.write(Object.fromEntries([checksTypes ? [name, text] : await plain(name, text)]))
    const packages = [`next@${version}`, ...react, ...(checksTypes ? types : []), `./${tarball.trim()}`]
    await run('npm', ['install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', ...packages], {
      cwd: folder,
    })
    return site
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(this.folder, name)), { recursive: true })
      await writeFile(join(this.folder, name), text)
    }
  }

  async build(): Promise<void> {
    await run(process.execPath, [this.#program, 'build', this.folder], {
      cwd: this.folder,
      env: { ...process.env, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' },
    })
  }

  /** Resolves when the process takes purges. */
  async start(port: number, host = '127.0.0.1', env: Record<string, string> = {}): Promise<RunningProcess> {
    const program = startProcess(
      process.execPath,
      [this.#program, 'start', this.folder, '-H', host, '-p', String(port)],
      { env: { TRELLIS_SECRET: secret, NEXT_TELEMETRY_DISABLED: '1', ...env } },
    )
    this.#running.add(program)
    void program.ended.then(() => this.#running.delete(program))
    await untilReady(program, async () => {
      const response = await fetch(`http://${host}:${port}/api/purge`, { method: 'POST', body: '{}' })
      if (response.status !== 403) throw new Error(`status ${response.status}`)
    })
    return program
  }

  async remove(): Promise<void> {
    for (const program of this.#running) await program.stop(0)
    await rm(this.folder, { recursive: true, force: true })
  }

  get #program(): string {
    return join(this.folder, 'node_modules/next/dist/bin/next')
  }
}
