import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiDocument } from '../src/openapi/document/api-document.ts'
import { loadApiDocument } from '../src/openapi/document/read-document.ts'
import { safePattern } from '../src/openapi/requests/safe-pattern.ts'
import { checkCommandLine, words } from './command-line.ts'

/**
 * Loads every JSON and YAML file of a folder as an OpenAPI document, as a configuration would, and prints each refusal with its line
 * and the share that loads; then runs every pattern of these documents against texts of 5 kB that make other engines backtrack:
 * npm run openapi:corpus -- FOLDER
 */
const usage = 'npm run openapi:corpus -- FOLDER'
checkCommandLine(usage, {}, [words.any])
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error(`name a folder: ${usage}`)

const patterns = new Set<string>()
const collectPatterns = (value: unknown): void => {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) {
    if (name === 'pattern' && typeof inner === 'string') patterns.add(inner)
    else if (name === 'patternProperties')
      for (const source of Object.keys(Object(inner))) patterns.add(source)
    collectPatterns(inner)
  }
}

const names = (await readdir(folder, { recursive: true }))
  .filter((name) => /\.(?:json|ya?ml)$/.test(name))
  .sort()
let loaded = 0
let refused = 0
let others = 0
for (const name of names) {
  const reading = await loadApiDocument(join(folder, name))
  if (reading.kind === 'loaded') {
    loaded += 1
    collectPatterns(new ApiDocument(reading.document).bundle.files)
  } else if (reading.messages.some((message) => message.endsWith('OpenAPI document of version 3.0 or 3.1')))
    others += 1
  else {
    refused += 1
    process.stdout.write(`${name}: ${reading.messages.length} faults, the first: ${reading.messages[0]}\n`)
  }
}
const share = ((100 * loaded) / Math.max(1, loaded + refused)).toFixed(2)
process.stdout.write(`${loaded} of ${loaded + refused} documents load (${share} %); ${others} other files\n`)

const octets = 5_000
const repeated = (text: string): string => text.repeat(octets / text.length + 1).slice(0, octets - 1)
/** Also the pattern's own characters: they come furthest into it. */
const hostileTexts = (pattern: string): readonly string[] =>
  [
    'a',
    '0',
    'A',
    ' ',
    '-',
    '.',
    '/',
    'aA0',
    'a.',
    'a@a.',
    '0,',
    pattern.replaceAll(/[^A-Za-z\d/._-]/g, '') || 'a',
  ]
    .map(repeated)
    .flatMap((text) => [`${text}!`, `!${text}`])

let slowestMs = 0
let slowest = ''
let slow = 0
let undecided = 0
for (const pattern of patterns) {
  const safe = safePattern(pattern)
  if (safe === undefined) undecided += 1
  else {
    for (const text of hostileTexts(pattern)) {
      // The fastest of up to three runs: other programs take the processor as well.
      let ms = Number.POSITIVE_INFINITY
      for (let run = 0; run < 3 && ms >= 5; run += 1) {
        const began = performance.now()
        safe.test(text)
        ms = Math.min(ms, performance.now() - began)
      }
      if (ms >= 10) slow += 1
      if (ms > slowestMs) {
        slowestMs = ms
        slowest = pattern
      }
    }
  }
}
process.stdout.write(
  `${patterns.size} patterns: ${undecided} undecided, the others take at most ${slowestMs.toFixed(1)} ms for a text of 5 kB (${slowest.slice(0, 120)}); ${slow} texts take 10 ms or more\n`,
)
