/**
 * Bundles the command line (src/main.ts), the module for other projects (src/index.ts) and all that they import, packages too, into
 * dist/: a user installs nothing else (docs/decisions/0020), and a few files start faster than hundreds of modules that are opened one
 * by one. What is imported with `import()` becomes a separate file, which is read when it is needed.
 *
 * node build.mjs [--if-outdated]
 */
import { realpathSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
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

/** Folders of the packages whose files are in the bundle. */
const bundledPackages = ({ inputs }) => {
  const folders = Object.keys(inputs).map(
    (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0],
  )
  return [...new Set(folders)].filter((folder) => folder !== undefined)
}

/** A package of its own licence has a file with its text; a few name the licence in package.json only. */
const licenceOf = async (path) => {
  const folder = join(root, path)
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
  const text = texts.length === 0 ? `Licence: ${license}` : texts.map((one) => one.trim()).join('\n\n')
  return `\n${name} ${version} (${license})\n${'-'.repeat(72)}\n${text}\n`
}

/** The licences oblige those who pass the packages on to pass these texts on. */
const writeLicences = async (folders) => {
  const texts = await Promise.all([...folders].sort().map(licenceOf))
  const title = 'Trellis contains these packages, each under its own licence.\n'
  await writeFile(join(root, 'dist/licences.txt'), title + texts.join(''))
}

const pageFiles = ['swagger-ui.css', 'swagger-ui-bundle.js']

/** The OpenAPI page of the admin side. */
const copyPage = async () => {
  await mkdir(join(root, 'dist/swagger-ui'), { recursive: true })
  const folder = join(root, 'node_modules/swagger-ui-dist')
  await Promise.all(
    pageFiles.map((name) => copyFile(join(folder, name), join(root, 'dist/swagger-ui', name))),
  )
}

/** The types of src/index.ts, which refers to no other file. */
const writeTypes = async () => {
  const { default: typescript } = await import('typescript')
  const { outputText } = typescript.transpileDeclaration(await readFile(join(root, 'src/index.ts'), 'utf8'), {
    fileName: 'index.ts',
    compilerOptions: { target: 'es2023', module: 'nodenext' },
  })
  await writeFile(join(root, 'dist/index.d.ts'), outputText)
}

/**
 * Modules of packages that load much of which the gateway uses little. The index of undici loads fetch, WebSocket, caches, mocks, and
 * because of the globals that they read the copy inside Node too; Fastify loads the compilers of schemas, and no route has a schema.
 */
const smallerModules = {
  'undici/index.js': `
    exports.Agent = require('./lib/dispatcher/agent')
    exports.Client = require('./lib/dispatcher/client')
    exports.Dispatcher = require('./lib/dispatcher/dispatcher')
    exports.Pool = require('./lib/dispatcher/pool')
    exports.buildConnector = require('./lib/core/connect')
    exports.errors = require('./lib/core/errors')`,
  '@fastify/ajv-compiler/index.js': 'module.exports = () => () => { throw new Error("not in the bundle") }',
  '@fastify/fast-json-stringify-compiler/index.js':
    'module.exports = () => () => { throw new Error("not in the bundle") }',
}

const withSmallerModules = {
  name: 'smaller modules',
  setup: ({ onLoad }) => {
    for (const [file, contents] of Object.entries(smallerModules))
      onLoad({ filter: new RegExp(`node_modules/${file.replaceAll('.', '\\.')}$`) }, () => ({ contents }))
  },
}

/**
 * `import` of `node:http` reads all that the module exports, also WebSocket and its events, for which Node 26 loads its own undici, a
 * tenth of a start; `require` reads what is used.
 */
const requiredHttp = {
  name: 'required node:http',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^node:http$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'required' } : undefined,
    )
    onLoad({ filter: /^/, namespace: 'required' }, ({ path }) => ({
      contents: `module.exports = require('${path}')`,
    }))
  },
}

/**
 * How esbuild makes dist/; test/structure/start-up.test.ts looks at the result.
 * @satisfies {import('esbuild').BuildOptions}
 */
export const bundleOptions = {
  absWorkingDir: root,
  entryPoints: ['src/main.ts', 'src/index.ts', 'src/load-document.ts'],
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // A third less to read and compile at each start. Names stay, and lines short, so that stack traces can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 200,
  sourcemap: true,
  sourcesContent: false,
  plugins: [withSmallerModules, requiredHttp],
  metafile: true,
  logLevel: 'warning',
  // Packages in CommonJS require the modules of Node.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module'\nconst require = createRequireOfBundle(import.meta.url)",
  },
}

const build = async () => {
  const bundler = await esbuild()
  if (bundler === undefined) return
  const { metafile } = await bundler.build(bundleOptions)
  await Promise.all([
    writeLicences([...bundledPackages(metafile), 'node_modules/swagger-ui-dist']),
    copyPage(),
    writeTypes(),
  ])
  // Folders of an older layout go as well: packed or copied, dist holds this build alone.
  const written = [
    ...Object.keys(metafile.outputs),
    ...['index.d.ts', 'licences.txt'].map((name) => `dist/${name}`),
    ...pageFiles.map((name) => `dist/swagger-ui/${name}`),
  ]
  const kept = new Set()
  for (let path of written) for (; path !== '.'; path = dirname(path)) kept.add(path)
  const found = await readdir(join(root, 'dist'), { recursive: true })
  const outdated = found.map((name) => join('dist', name)).filter((path) => !kept.has(path))
  await Promise.all(outdated.map((path) => rm(join(root, path), { recursive: true, force: true })))
}

const isProgram = realpathSync(argv[1]) === fileURLToPath(import.meta.url)
if (isProgram && (!argv.includes('--if-outdated') || (await isOutdated()))) await build()
