import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build, type Metafile } from 'esbuild'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { bundleOptions } from '../../build.mjs'

/** The files of dist, with what each holds and imports; nothing is written. */
let outputs: Metafile['outputs']
beforeAll(async () => {
  const { metafile } = await build({ ...bundleOptions, write: false })
  outputs = metafile.outputs
})

/** The modules that are loaded together with one, that is without `import()`. */
const loadedWith = (module: string): readonly string[] => {
  const files = new Set(Object.keys(outputs).filter((file) => outputs[file]?.entryPoint === module))
  for (const file of files) {
    for (const { kind, path } of outputs[file]?.imports ?? [])
      if (kind === 'import-statement' && path in outputs) files.add(path)
  }
  return [...files].flatMap((file) => Object.keys(outputs[file]?.inputs ?? {}))
}

describe('dist/main.js', () => {
  test.each([['src/gateway.ts'], ['src/config/load.ts'], ['node_modules/zod/'], ['node_modules/fastify/']])(
    'does not load %s before a command needs it',
    (part) => {
      expect(loadedWith('src/main.ts').filter((module) => module.startsWith(part))).toEqual([])
    },
  )

  test('loads a configuration without the gateway', () => {
    const modules = loadedWith('src/gateway/load-config.ts')
    expect(modules).toContain('src/config/load.ts')
    expect(
      modules.filter((module) =>
        /^src\/(?!config\/|gateway\/load-config\.ts$|openapi\/(document|config-faults)|wordpress\/|service\/|http\/|errors\.ts$|clock\.ts$|package-file\.ts$)|fastify|undici/.test(
          module,
        ),
      ),
    ).toEqual([])
  })
})

describe('a gateway is loaded without', () => {
  test.each([
    ['the demo', /^demo\//],
    ['OpenTelemetry, except its API, which prom-client uses', /@opentelemetry\/(?!api\/)/],
    ['a client of Redis', /node_modules\/ioredis\//],
    ['the checks of OpenAPI documents', /node_modules\/js-yaml\/|openapi-requests\.ts/],
  ])('%s', (_description, modules) => {
    const loaded = loadedWith('src/workers.ts')
    expect(loaded).toContain('src/gateway.ts')
    expect(loaded.filter((module) => modules.test(module))).toEqual([])
    const all = Object.values(outputs).flatMap(({ inputs }) => Object.keys(inputs))
    expect(all.filter((module) => modules.test(module))).not.toEqual([])
  })
})

/** A project with the build of this one, a source, and a dist in which earlier builds have left files and folders. */
const projectWithOldDist = async (): Promise<string> => {
  const root = await mkdtemp(join(tmpdir(), 'trellis-build-'))
  onTestFinished(() => rm(root, { recursive: true }))
  for (const folder of ['src/cli', 'dist/rooms/old', 'dist/empty/old'])
    await mkdir(join(root, folder), { recursive: true })
  for (const file of ['build.mjs', 'package.json', 'tsconfig.json', 'src/cli/node-version.js'])
    await copyFile(file, join(root, file))
  await symlink(resolve('node_modules'), join(root, 'node_modules'))
  await writeFile(join(root, 'src/main.ts'), 'void import("./lazy.ts")')
  await writeFile(join(root, 'src/lazy.ts'), 'export const lazy = 1')
  await writeFile(join(root, 'src/index.ts'), 'export const version: string = "1"')
  await writeFile(join(root, 'src/load-document.ts'), '')
  await writeFile(join(root, 'dist/main.js'), 'an older build')
  await writeFile(join(root, 'dist/rooms/old/chunk.js'), '')
  await writeFile(join(root, 'dist/old.js'), '')
  return root
}

test('a build leaves nothing in dist of earlier builds, neither files nor folders', async () => {
  const root = await projectWithOldDist()
  await promisify(execFile)(process.execPath, ['build.mjs'], { cwd: root })
  const names = await readdir(join(root, 'dist'), { recursive: true })
  expect(names.map((name) => name.replace(/^lazy-\w+/, 'lazy')).sort()).toEqual([
    'index.d.ts',
    'index.js',
    'index.js.map',
    'lazy.js',
    'lazy.js.map',
    'licences.txt',
    'load-document.js',
    'load-document.js.map',
    'main.js',
    'main.js.map',
    'swagger-ui',
    'swagger-ui/swagger-ui-bundle.js',
    'swagger-ui/swagger-ui.css',
  ])
})
