/**
 * Bundles the command line (src/main.ts), the module for other projects (src/index.ts) and all that they import, packages too, into
 * dist/: a user installs nothing else (docs/decisions/0020), and a few files start faster than hundreds of modules that are opened one
 * by one. What is imported with `import()` becomes a separate file, which is read when it is needed.
 *
 * node build.mjs [--if-outdated | --package]
 */
import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { copyFile, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { argv, env, exit, stderr, stdout, versions } from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { nodeFault } from './src/cli/node-version.js'

const root = fileURLToPath(new URL('.', import.meta.url))
/** Said before anything fails for this reason. */
const requireNode = async () => {
  const { engines } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const fault = nodeFault(versions.node, engines.node)
  if (fault === undefined) return
  stderr.write(`trellis: ${fault}\n`)
  exit(1)
}

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

/** The module; undefined where it is not installed. */
const installed = async (name) => {
  try {
    return await import(name)
  } catch (cause) {
    if (cause?.code !== 'ERR_MODULE_NOT_FOUND') throw cause
    return undefined
  }
}

const esbuild = async () => {
  const bundler = await installed('esbuild')
  // `npm ci --omit=optional` calls `prepare` too, beside a dist/ that was built elsewhere.
  if (bundler === undefined && env.npm_lifecycle_event !== 'prepare')
    throw new Error('esbuild is not installed: run npm ci')
  if (bundler === undefined) stdout.write('not built: esbuild is not installed\n')
  return bundler
}

/** Folders of the packages whose files are in the bundle. */
const bundledPackages = ({ inputs }) => {
  const folders = Object.keys(inputs).map(
    (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0],
  )
  return [...new Set(folders)].filter((folder) => folder !== undefined)
}

/** The text for packages that name this licence in package.json only. */
const mit = (owner) => `MIT License

Copyright (c) ${owner}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`

const licenceOf = async (path) => {
  const folder = join(root, path)
  const { name, version, license, author } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')))
  if (texts.length === 0 && license !== 'MIT')
    throw new Error(`${name} has no text of its licence, ${license}`)
  if (texts.length === 0) texts.push(mit(author?.name ?? author))
  const text = texts.map((one) => one.trim()).join('\n\n')
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

/** The types of src/index.ts, which refers to no other file. They are for users of the package: a checkout runs without them. */
const writeTypes = async () => {
  const typescript = (await installed('typescript'))?.default
  if (typescript === undefined) return
  const { outputText } = typescript.transpileDeclaration(await readFile(join(root, 'src/index.ts'), 'utf8'), {
    fileName: 'index.ts',
    compilerOptions: { target: 'es2023', module: 'nodenext' },
  })
  await writeFile(join(root, 'dist/index.d.ts'), outputText)
}

/**
 * How esbuild makes dist/; test/structure/start-up.long.test.ts looks at the result.
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
  metafile: true,
  logLevel: 'warning',
  // `debug` uses it where it is installed: in a checkout, by packages that are no part of this one.
  external: ['supports-color'],
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

/**
 * The CycloneDX list of npm, without the packages that only the development or the build needs; its own `--omit` leaves out what both
 * need.
 */
const sbom = async (direct) => {
  const list = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx']
  const { stdout: text } = await promisify(execFile)('npm', list, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const { components, dependencies, metadata, ...bom } = JSON.parse(text)
  const byRef = new Map(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))
  // npm names a component by its folder, which for an alias (`overrides`) is another name.
  const nameOf = ({ 'bom-ref': ref }) => ref.slice(0, ref.lastIndexOf('@'))
  const refs = new Set(components.filter((one) => direct.includes(nameOf(one))).map((one) => one['bom-ref']))
  for (const ref of refs) for (const below of byRef.get(ref) ?? []) refs.add(below)
  const named = (one) => ({ ...one, name: nameOf(one), scope: 'required', properties: [] })
  return {
    ...bom,
    metadata: { ...metadata, component: named(metadata.component) },
    components: components.filter((one) => refs.has(one['bom-ref'])).map(named),
    dependencies: dependencies.filter(({ ref }) => refs.has(ref)),
  }
}

/** Pages also refer to sources and tests, which are only in the repository: there a reader of the package gets the words without the link. */
const unlinkAbsent = async (folder) => {
  const pages = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.md'))
  for (const page of pages) {
    const file = join(folder, page)
    const text = await readFile(file, 'utf8')
    const links = [...text.matchAll(/\[([^\]]*)\]\(([^)#\s:]+)(?:#[^)\s]*)?\)/g)]
    const absent = await Promise.all(
      links.map(
        async ([, , path]) => (await stat(join(dirname(file), path)).catch(() => undefined)) === undefined,
      ),
    )
    const changed = links
      .filter((_, index) => absent[index])
      .reduce((changing, [link, words]) => changing.replaceAll(link, words), text)
    if (changed !== text) await writeFile(file, changed)
  }
}

/** The package as it is published: all that it needs is in dist/, so its manifest names no package. With a CycloneDX list of those in dist/. */
const writePackage = async () => {
  const folder = join(root, 'package')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const {
    dependencies,
    optionalDependencies: _build,
    devDependencies: _dev,
    overrides: _overrides,
    scarfSettings: _settings,
    allowScripts: _installScripts,
    scripts: _scripts,
    private: _private,
    ...published
  } = manifest
  await writeFile(join(folder, 'package.json'), `${JSON.stringify(published, undefined, 2)}\n`)
  const names = published.files.filter((name) => !name.startsWith('!'))
  const copied = [...names, 'README.md']
  const isPublished = (path) => !/\.map$|compile-cache|dashboards\/source/.test(path)
  for (const name of copied)
    await cp(join(root, name), join(folder, name), { recursive: true, filter: isPublished })
  await unlinkAbsent(folder)
  await writeFile(join(folder, 'dist/sbom.cdx.json'), JSON.stringify(await sbom(Object.keys(dependencies))))
}

const isProgram = realpathSync(argv[1]) === fileURLToPath(import.meta.url)
if (isProgram) await requireNode()
if (isProgram && (!argv.includes('--if-outdated') || (await isOutdated()))) await build()
if (isProgram && argv.includes('--package')) await writePackage()
