// nightly.mjs [--short] [PART...]   Everything at length, for a machine that has hours: .ci/run has a short form of each part. What each
// part came to stands in docs/evidence/nightly.md afterwards, with its date. --short: a minute or so of each, for those who change it;
// nothing is written. Exit code 0 only when no part failed.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { parts } from './nightly-parts.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const page = join(root, 'docs/evidence/nightly.md')

const isShort = process.argv.includes('--short')
const named = process.argv.slice(2).filter((name) => name !== '--short')
const unknown = named.filter((name) => !parts.some((part) => part.name === name))
if (unknown.length > 0) {
  process.stderr.write(
    `no such part: ${unknown.join(', ')}; there are ${parts.map(({ name }) => name).join(', ')}\n`,
  )
  process.exit(2)
}

/** The Node of the Dockerfile, as npm has it. */
const folderOfNode = async () => {
  const [, version] = /^FROM node:(\d+)/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8')) ?? []
  const folder = mkdtempSync(join(tmpdir(), 'trellis-node-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const name = `node-linux-${process.arch}`
  const options = ['--silent', '--no-audit', '--no-fund', '--prefix', folder]
  const { code } = await run(['npm', 'install', ...options, `${name}@${version}`], {})
  if (code !== 0) throw new Error(`Node ${version} cannot be installed`)
  return join(folder, 'node_modules', name, 'bin')
}

/** Runs a command, shows what it prints, and returns it. */
const run = ([command, ...args], more) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: root,
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of ['stdout', 'stderr'])
      child[stream].on('data', (bytes) => {
        process[stream].write(bytes)
        output += bytes
      })
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, output: stripVTControlCharacters(output) }))
  })

const head = `# What the last night came to

Written by \`npm run nightly\`, which CI has a short form of ([its parts](../../.ci/nightly-parts.mjs)). A part can be run alone: \`npm run nightly -- soak\`.

| part | day | Node | took | result |
| --- | --- | --- | --- | --- |
`

/** The rows of the page, by their first cell. */
const readRows = () =>
  new Map(
    (existsSync(page) ? readFileSync(page, 'utf8') : '')
      .split('\n')
      .flatMap((line) => (/^\| `(.+?)` \|/.test(line) ? [[/^\| `(.+?)` \|/.exec(line)[1], line]] : [])),
  )

const durationText = (seconds) => (seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`)

let failed = 0
for (const part of parts.filter(({ name }) => named.length === 0 || named.includes(name))) {
  process.stdout.write(`=== ${part.name}: ${part.title}\n`)
  const began = performance.now()
  const path = part.needsNodeOfImage ? { PATH: `${await folderOfNode()}:${env.PATH}` } : {}
  const command = isShort ? (part.short?.command ?? part.command) : part.command
  const { code, output } = await run(command, { ...path, ...part.env, ...(isShort ? part.short?.env : {}) })
  const took = durationText(Math.round((performance.now() - began) / 1000))
  const figures = [...output.matchAll(part.figures)].map(([all, figure = all]) => figure.trim())
  const result = code === 0 ? figures.slice(-8).join('; ') : `failed: ${figures.slice(-3).join('; ')}`
  failed += code === 0 ? 0 : 1
  process.stdout.write(`=== ${part.name}: ${took}, ${result}\n`)
  if (isShort) continue
  const rows = readRows()
  const cells = [`\`${part.name}\``, new Date().toISOString().slice(0, 10), process.version, took, result]
  rows.set(part.name, `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
  // In the order of the parts; those that are no more go.
  writeFileSync(page, `${head}${parts.flatMap(({ name }) => rows.get(name) ?? []).join('\n')}\n`)
}
process.exitCode = failed === 0 ? 0 : 1
