/**
 * Bundles src/main.ts and all that it imports, packages too, into dist/: hundreds of modules that are opened one by one take longer to
 * start than a few files. What is imported with `import()` becomes a file of its own, which is read when it is needed.
 *
 * node build.mjs [--if-outdated]
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { argv, env, stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('.', import.meta.url))
const sources = ['build.mjs', 'package-lock.json', 'tsconfig.json', 'src', 'demo']

/** Milliseconds; 0 when there is no such file. */
const modified = async (path) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0

/** When a file or folder, or anything in it, was written last. */
const youngest = async (path) => {
  const below = await readdir(path, { recursive: true }).catch(() => [])
  return Math.max(...(await Promise.all([path, ...below.map((name) => join(path, name))].map(modified))))
}

const isOutdated = async () => {
  const built = await modified(join(root, 'dist/main.js'))
  const written = await Promise.all(sources.map((source) => youngest(join(root, source))))
  return Math.max(...written) > built
}

const esbuild = async () => {
  try {
    return await import('esbuild')
  } catch (cause) {
    // `npm ci --omit=dev` calls `prepare` too, beside a dist/ that was built elsewhere.
    if (env.npm_lifecycle_event !== 'prepare' || cause?.code !== 'ERR_MODULE_NOT_FOUND') throw cause
    stdout.write('not built: esbuild is not installed\n')
    return undefined
  }
}

const build = async () => {
  const bundler = await esbuild()
  if (bundler === undefined) return
  const { metafile } = await bundler.build({
    absWorkingDir: root,
    entryPoints: ['src/main.ts'],
    outdir: 'dist',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    logLevel: 'warning',
    // Packages in CommonJS require the modules of Node.
    banner: {
      js: "import { createRequire as createRequireOfBundle } from 'node:module'\nconst require = createRequireOfBundle(import.meta.url)",
    },
  })
  // Folders of an older layout go as well: packed or copied, dist holds this build alone.
  const kept = new Set()
  for (let path of Object.keys(metafile.outputs)) for (; path !== '.'; path = dirname(path)) kept.add(path)
  const found = await readdir(join(root, 'dist'), { recursive: true })
  const outdated = found.map((name) => join('dist', name)).filter((path) => !kept.has(path))
  await Promise.all(outdated.map((path) => rm(join(root, path), { recursive: true, force: true })))
}

if (!argv.includes('--if-outdated') || (await isOutdated())) await build()
