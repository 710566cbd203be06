import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundleOptions } from '../../build.mjs'
import { testAtLength } from '../support/at-length.ts'
import { builtGateway } from '../support/built-gateway.ts'
import { secondsToFirstHit } from '../support/first-hit.ts'
import { linksOfPages } from '../support/links-of-pages.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { blocksOf } from '../support/shown-commands.ts'

let folder: string
let packed: readonly string[]
let tarball: string
/** An empty project into which the package was installed. */
let project: string

/** The environment of a user: npm sets more variables for the tests. */
const userEnv = (more: Record<string, string> = {}): Record<string, string> => {
  const { PATH = '', HOME = '' } = process.env
  return { PATH, HOME, NO_COLOR: '1', ...more }
}

const run = async (
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: Record<string, string> },
): Promise<{ code: number; stdout: string; stderr: string }> => {
  try {
    const result = await promisify(execFile)(program, args, { ...options, env: userEnv(options.env) })
    return { code: 0, ...result }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

const succeed = async (program: string, args: readonly string[], cwd: string): Promise<string> => {
  const { code, stdout, stderr } = await run(program, args, { cwd })
  if (code !== 0) throw new Error(`${program} ${args.join(' ')}: ${code}\n${stdout}\n${stderr}`)
  return stdout
}

/** The commands need no registry: nothing is to be installed beside the package itself. */
const offline = ['--offline', '--ignore-scripts', '--no-audit', '--no-fund']

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-package-'))
  await builtGateway()
  await succeed('node', ['build.mjs', '--if-outdated', '--package'], resolve('.'))
  const response = await succeed(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', folder, './package'],
    resolve('.'),
  )
  const [file] = JSON.parse(response) as { filename: string; files: { path: string }[] }[]
  packed = file?.files.map(({ path }) => path) ?? []
  tarball = join(folder, file?.filename ?? '')
  project = await mkdtemp(join(folder, 'project-'))
  await writeFile(join(project, 'package.json'), '{"name":"project","private":true,"type":"module"}')
  await succeed('npm', ['install', ...offline, tarball], project)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const trellis = (args: readonly string[], env: Record<string, string> = {}) =>
  run(join(project, 'node_modules/.bin/trellis'), args, { cwd: project, env })

const sizeOf = async (path: string): Promise<number> => {
  const names = await readdir(path, { recursive: true, withFileTypes: true })
  const sizes = await Promise.all(
    names.filter((one) => one.isFile()).map((one) => stat(join(one.parentPath, one.name))),
  )
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

describe('the packed files', () => {
  test('have no source maps, sources or tests', () => {
    expect(packed).toContain('dist/main.js')
    expect(packed.filter((path) => /\.map$|^(?:src|test|bench|demo)\//.test(path))).toEqual([])
  })

  test('have, of each package in the bundle, a line in the CycloneDX list and the text of its licence', async () => {
    const installed = join(project, 'node_modules/trellis/dist')
    const { bomFormat, metadata, components } = JSON.parse(
      await readFile(join(installed, 'sbom.cdx.json'), 'utf8'),
    ) as {
      bomFormat: string
      metadata: { component: { name: string } }
      components: { name: string; version: string; purl: string }[]
    }
    expect([bomFormat, metadata.component.name]).toEqual(['CycloneDX', 'trellis'])
    const listed = new Set(components.map(({ name, version }) => `${name} ${version}`))
    const texts = new Map(
      (await readFile(join(installed, 'licences.txt'), 'utf8'))
        .split(/\n(?=\S+ \d\S* \([^\n]*\)\n-{72}\n)/)
        .slice(1)
        .map((text) => [text.split(' (')[0] ?? '', text.slice(text.indexOf('\n'))]),
    )
    const { metafile } = await build({ ...bundleOptions, write: false })
    const folders = new Set(
      Object.keys(metafile.inputs).map(
        (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0],
      ),
    )
    folders.add('node_modules/swagger-ui-dist')
    folders.delete(undefined)
    expect(folders.size).toBeGreaterThan(50)
    for (const folder of folders) {
      const { name, version } = JSON.parse(await readFile(join(folder ?? '', 'package.json'), 'utf8'))
      expect(listed, 'the CycloneDX list').toContain(`${name} ${version}`)
      expect(texts.get(`${name} ${version}`)?.length ?? 0, `the licence of ${name}`).toBeGreaterThan(500)
    }
    expect(components.map(({ name }) => name)).not.toContain('vitest')
    for (const { name, version, purl } of components)
      expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${version}`)
  })

  test('have a manifest that names no package', async () => {
    const manifest = JSON.parse(await readFile(join(project, 'node_modules/trellis/package.json'), 'utf8'))
    expect(Object.keys(manifest).filter((key) => /dependencies|overrides|private/i.test(key))).toEqual([])
  })

  test('have the configurations and pages that the documents name', () => {
    for (const path of [
      'compose.yaml',
      'config/gateway.yaml',
      'dashboards/overview.json',
      'dashboards/rules/trellis-alerts.yml',
      'deploy/helm/trellis/Chart.yaml',
      'deploy/systemd/trellis.service',
      'deploy/wordpress/trellis.php',
      'config/gateway.schema.json',
      'docs/configuration.md',
      'public/status/index.html',
      'README.md',
    ])
      expect(packed).toContain(path)
  })
})

test('no link of a page leads to a file or heading that the package lacks', async () => {
  const installed = join(project, 'node_modules/trellis')
  const { links, dead } = await linksOfPages(installed)
  expect(links).toBeGreaterThan(200)
  expect(dead).toEqual([])
})

testAtLength('the quick start with a WordPress begins with the package as it says', async () => {
  const page = await readFile(resolve('docs/wordpress.md'), 'utf8')
  const [, command = ''] = /^or with the package.*`(npm install [^`]*)`$/m.exec(page) ?? []
  const cwd = await mkdtemp(join(folder, 'quick-start-'))
  await succeed(
    'bash',
    ['-c', command.replace('./trellis-0.1.0.tgz', `${offline.join(' ')} ${tarball}`)],
    cwd,
  )
  await succeed('npx', ['trellis', 'init', 'wordpress', 'http://127.0.0.1:1'], cwd)
  expect(await succeed('npx', ['trellis', 'check'], cwd)).toContain('valid, 2 services')
})

describe('trellis init writes files of the package', () => {
  test.each([
    ['companion', ['README.md', 'trellis.php']],
    ['dashboards', ['overview.json', 'rules/trellis-alerts.yml']],
    ['systemd', ['trellis.service']],
    ['compose', ['Dockerfile', 'compose.yaml', 'dashboards/overview.json', 'trellis/dist/main.js']],
  ])('%s', async (name, files) => {
    const to = join(project, `files-of-${name}`)
    const { code, stdout } = await trellis(['init', name, to])
    expect([code, stdout]).toEqual([0, expect.stringContaining(`Files written to ${to}. Next:`)])
    expect(await readdir(to, { recursive: true })).toEqual(expect.arrayContaining(files))
  })

  test('and replaces them only with --force', async () => {
    const to = join(project, 'files-of-systemd')
    expect(await trellis(['init', 'systemd', to])).toMatchObject({
      code: 8,
      stderr: expect.stringContaining('exists already; --force replaces it'),
    })
    expect((await trellis(['init', 'systemd', to, '--force'])).code).toBe(0)
  })

  test('the unit starts this installation with this Node', async () => {
    const unit = await readFile(join(project, 'files-of-systemd/trellis.service'), 'utf8')
    expect(unit).toContain(`WorkingDirectory=${join(project, 'node_modules/trellis')}\n`)
    expect(unit.match(/^Exec(?:Start|StartPre)=.*dist\/main\.js/gm)).toHaveLength(2)
    for (const line of unit.match(/^Exec(?:Start|StartPre)=.*/gm) ?? [])
      expect(line).toContain(process.execPath)
  })

  test('deployment.md gives the configuration the token that the unit passes', async () => {
    const page = await readFile(resolve('docs/deployment.md'), 'utf8')
    const [command = ''] = /^sed .* > gateway\.yaml$/m.exec(page) ?? []
    const cwd = await mkdtemp(join(folder, 'etc-'))
    await run(join(project, 'node_modules/.bin/trellis'), ['init', 'wordpress', 'http://127.0.0.1:1'], {
      cwd,
    })
    await succeed('bash', ['-c', command], cwd)
    const written = await readFile(join(cwd, 'gateway.yaml'), 'utf8')
    expect(written.match(/^ *token: (.*)$/gm)).toEqual([
      '  token: file:/run/credentials/trellis.service/admin-token',
    ])
    // The suggestion for the companion keeps its own token.
    expect(written).toMatch(/^ *# +token: "\$\{TRELLIS_TOKEN/m)
    const unit = await readFile(resolve('deploy/systemd/trellis.service'), 'utf8')
    expect(unit).toMatch(/^LoadCredential=admin-token:/m)
  })

  test('every file that compose mounts is written, and the image runs the package', async () => {
    const to = join(project, 'files-of-compose')
    const compose = await readFile(join(to, 'compose.yaml'), 'utf8')
    const mounted = [...compose.matchAll(/- (\.\/[^:]+):/g)].map(([, path = '']) => path)
    expect(mounted.length).toBeGreaterThan(3)
    for (const path of mounted) await stat(join(to, path))
    const image = await readFile(join(to, 'Dockerfile'), 'utf8')
    expect(image.match(/^(?:FROM|COPY|ENTRYPOINT) .*/gm)).toEqual([
      expect.stringMatching(/^FROM node:/),
      'COPY trellis ./',
      expect.stringContaining('dist/main.js'),
    ])
    expect(await succeed(process.execPath, ['dist/main.js', '--version'], join(to, 'trellis'))).toMatch(/^\d/)
  })

  test('without a folder it says what is missing', async () => {
    expect((await trellis(['init', 'companion'])).stderr).toBe(
      "trellis: missing required argument 'folder'\nTry: trellis init companion --help\n",
    )
  })
})

describe('installed without scripts in an empty project', () => {
  test('at most 60 packages and 45 MB are installed, and none of them reports its installation', async () => {
    const listed = await succeed('npm', ['ls', '--omit=dev', '--all', '--parseable'], project)
    const packages = listed.trim().split('\n').slice(1)
    expect(packages.length).toBeLessThanOrEqual(60)
    expect(listed).not.toContain('scarf')
    expect(await sizeOf(join(project, 'node_modules'))).toBeLessThanOrEqual(45_000_000)
  })

  test('without a configuration, commands explain what to do and start nothing', async () => {
    const { code, stderr } = await trellis(['start'])
    expect(stderr).toContain('no configuration found')
    expect(stderr).toContain('trellis init')
    expect(code).toBe(2)
  })

  describe('trellis init, check, start, status, warm and purge', () => {
    let origin: Origin
    let program: RunningProcess
    let ports: Record<string, string>
    beforeAll(async () => {
      origin = await startOrigin()
      const headers = { 'Content-Type': 'text/plain', 'Cache-Control': 'max-age=60' }
      origin.script = (_, wire) => wire.respond({ headers, content: 'content' })
      expect(await trellis(['init', 'open', origin.origin])).toMatchObject({ code: 0 })
      ports = {
        TRELLIS_PORT: String(await freePort()),
        TRELLIS_ADMIN_PORT: String(await freePort()),
        TRELLIS_ADMIN_TOKEN: 'secret',
      }
      expect(await trellis(['check'], ports)).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^\.\/trellis\.yaml: valid, 1 service, hash /),
      })
      program = startProcess(join(project, 'node_modules/.bin/trellis'), ['start'], {
        cwd: project,
        env: ports,
      })
      await untilReady(program, async () => {
        const { code, stderr } = await trellis(['status'], ports)
        if (code !== 0) throw new Error(stderr)
      })
    })
    afterAll(async () => {
      await program.stop(500)
      await origin.close()
    })
    const admin = () => `http://127.0.0.1:${ports['TRELLIS_ADMIN_PORT']}`

    test('serve, store and purge a response', async () => {
      const read = async (): Promise<string> => {
        const response = await fetch(`http://127.0.0.1:${ports['TRELLIS_PORT']}/a`)
        expect(await response.text()).toBe('content')
        return response.headers.get('cache-status') ?? ''
      }
      await read()
      expect(await read()).toMatch(/^trellis; hit/)
      expect((await trellis(['status'], ports)).stdout).toMatch(/cache +1 response,/)
      expect((await trellis(['purge', '--url', '/a'], ports)).stdout).toBe('1 stored response removed\n')
      expect((await trellis(['warm', '/a'], ports)).stdout).toBe('1 URL fetched in the background\n')
      await expect.poll(read).toMatch(/^trellis; hit/)
    })

    test('the status page and the OpenAPI page have all their files', async () => {
      const headers = { authorization: 'Bearer secret' }
      for (const [page, pattern] of [
        ['/', /(?:href|src)="(status\/[^"]+)"/g],
        ['/docs', /(?:href|src)="(docs\/[^"]+)"/g],
      ] as const) {
        const text = await (await fetch(admin() + page, { headers })).text()
        const files = [...text.matchAll(pattern)].map(([, file]) => file)
        expect(files.length).toBeGreaterThan(1)
        for (const file of files) {
          const response = await fetch(`${admin()}/${file}`, { headers })
          expect([file, response.status]).toEqual([file, 200])
          expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(100)
        }
      }
    })
  })

  test('the demo starts, with its embedded upstreams', async () => {
    const env = { TRELLIS_PORT: String(await freePort()), TRELLIS_ADMIN_PORT: String(await freePort()) }
    const program = startProcess(join(project, 'node_modules/.bin/trellis'), ['start', '--demo'], {
      cwd: project,
      env,
    })
    const plants = async (): Promise<void> => {
      const response = await fetch(`http://127.0.0.1:${env.TRELLIS_PORT}/plants`, {
        headers: { authorization: 'Bearer x' },
      })
      if (!response.ok) throw new Error(String(response.status))
    }
    await untilReady(program, plants, 60_000)
    await program.stop(500)
  })

  test('traces need no further package', async () => {
    const file = join(project, 'traced.yaml')
    const port = await freePort()
    await writeFile(
      file,
      JSON.stringify({
        listen: { port },
        admin: { port: 0 },
        tracing: { otlpUrl: 'http://127.0.0.1:9' },
        services: { a: { contract: 'open', mount: '/', upstream: { targets: ['http://127.0.0.1:9'] } } },
      }),
    )
    const program = startProcess(join(project, 'node_modules/.bin/trellis'), ['start', '-c', file], {})
    await untilReady(program, async () => {
      await (await fetch(`http://127.0.0.1:${port}/`)).text()
    })
    await program.stop(500)
  })
})

testAtLength(
  'a newcomer with an OpenAPI document and the package needs two commands to the first hit',
  async () => {
    const document = resolve('config/pets.example.yaml')
    const commands = [['start', '--demo', 'openapi', document]]
    const seconds = await secondsToFirstHit(folder, tarball, commands, '/pets')
    process.stdout.write(`a document: ${seconds.toFixed(1)} s to the first hit\n`)
    expect(seconds).toBeLessThan(60)
  },
)

describe('startGateway, for the tests of other projects', () => {
  test('the example of the documents passes, and its types are right', async () => {
    const [example = ''] = blocksOf(await readFile('docs/testing.md', 'utf8'), 'ts')
    expect(example).toContain("from 'trellis'")
    await writeFile(join(project, 'gateway.test.ts'), example)
    const tsconfig = {
      compilerOptions: {
        module: 'nodenext',
        target: 'es2023',
        strict: true,
        noEmit: true,
        types: ['node'],
        typeRoots: [resolve('node_modules/@types')],
      },
      files: ['gateway.test.ts'],
    }
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify(tsconfig))
    await succeed(
      process.execPath,
      [resolve('node_modules/@typescript/native/bin/tsc'), '-p', project],
      project,
    )
    // Node 20 reads no types; a bundler removes them.
    const { transform } = await import('esbuild')
    const { code } = await transform(example, { loader: 'ts' })
    await writeFile(join(project, 'gateway.test.mjs'), code)
    const output = await succeed(process.execPath, ['--test', 'gateway.test.mjs'], project)
    expect(output).toMatch(/pass 1\b/)
    expect(output).toMatch(/fail 0\b/)
  })
})

testAtLength(
  'npm ci --omit=dev builds in a fresh checkout, and npm start starts the demo there',
  async () => {
    const checkout = await mkdtemp(join(folder, 'checkout-'))
    for (const file of ['package.json', 'package-lock.json', 'build.mjs', '.npmrc', 'tsconfig.json'])
      await cp(file, join(checkout, file))
    for (const part of ['src', 'demo', 'config', 'contracts', 'public'])
      await cp(part, join(checkout, part), { recursive: true })
    const { code, stderr } = await run('npm', ['ci', '--omit=dev', '--prefer-offline'], { cwd: checkout })
    expect([code, stderr]).toEqual([0, expect.any(String)])
    const ports = { TRELLIS_PORT: String(await freePort()), TRELLIS_ADMIN_PORT: String(await freePort()) }
    const program = startProcess('npm', ['start'], { cwd: checkout, env: ports })
    try {
      await untilReady(program, async () => {
        const { status } = await fetch(`http://127.0.0.1:${ports.TRELLIS_ADMIN_PORT}/readyz`)
        if (status !== 200) throw new Error(`readyz: ${status}`)
      })
    } finally {
      await program.stop()
    }
  },
)
