import { readdir, readFile } from 'node:fs/promises'
import { stdout } from 'node:process'
import { fileURLToPath } from 'node:url'

// npm run bench:walls [-- --lines]: how much of src knows which contract a service has; the goals are in docs/decisions/0022.

const root = fileURLToPath(new URL('../', import.meta.url))
const paths = (await readdir(`${root}src`, { recursive: true })).filter((path) => path.endsWith('.ts')).sort()
const files = await Promise.all(
  paths.map(async (path) => ({ path, lines: (await readFile(`${root}src/${path}`, 'utf8')).split('\n') })),
)

/** A line with its place; imports name files, which is another number. */
type Line = { readonly at: string; readonly text: string }

const linesOf = (outside: RegExp): readonly Line[] =>
  files
    .filter(({ path }) => !outside.test(path))
    .flatMap(({ path, lines }) => lines.map((text, index) => ({ at: `src/${path}:${index + 1}`, text })))
    .filter(({ text }) => !/^import |^} from /.test(text))

const wings = '^(?:wordpress|openapi)/'
const switches = linesOf(new RegExp(`${wings}|^config/`)).filter(({ text }) =>
  /contract\s*[!=]==|switch \([^)]*contract\)/.test(text),
)
const namings = linesOf(/^(?:wordpress|config|cli)\//).filter(({ text }) =>
  /wordpress|\bphp|php\b|Php/i.test(text),
)

const names = new Map<string, readonly string[]>()
for (const { path, lines } of files) {
  for (const line of lines) {
    const [, name] = /^(?:export )?(?:type|interface|class) (\w+)/.exec(line) ?? []
    if (name !== undefined) names.set(name, [...(names.get(name) ?? []), `src/${path}`])
  }
}
const shared = [...names].filter(([, places]) => places.length > 1)

const service = files.find(({ path }) => /^exchange\/exchange\.ts$/.test(path))
const source = service?.lines.join('\n') ?? ''
const [, body = ''] = /^export type Service = \{\n([\s\S]*?)^\}/m.exec(source) ?? []
const members = body.split('\n').filter((line) => /^ {2}(?:readonly )?\w+\??[:(]/.test(line))

const rows: readonly (readonly [string, number, readonly string[]])[] = [
  ['lines of src', files.reduce((sum, { lines }) => sum + lines.length - 1, 0), []],
  [
    'comparisons of contracts outside the wings and config',
    switches.length,
    switches.map(({ at, text }) => `${at}: ${text.trim()}`),
  ],
  [
    'lines that name WordPress or PHP outside the wing, config and cli',
    namings.length,
    namings.map(({ at, text }) => `${at}: ${text.trim()}`),
  ],
  ['members of Service', members.length, members.map((line) => line.trim())],
  [
    'type names declared twice or more',
    shared.length,
    shared.map(([name, places]) => `${name}: ${places.join(', ')}`),
  ],
]
const isLong = process.argv.includes('--lines')
for (const [text, count, places] of rows) {
  stdout.write(`${String(count).padStart(6)}  ${text}\n`)
  if (isLong) for (const place of places) stdout.write(`          ${place}\n`)
}
