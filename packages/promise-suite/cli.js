#!/usr/bin/env node
// @ts-check
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { startBackend } from './backend.js'
import { drive, nines } from './drive.js'

const usage = `trellis-promise [options] [NAME=]URL...   writes and reads through the caches at these URLs, one after the other
trellis-promise backend [--port N] [--max-age SECONDS] [--delay MS]   runs the reference backend on loopback

  --seconds N    for each URL (10)
  --reads N      go on until there are so many, for twenty times as long at most (0)
  --seed N       of what is read and written (1)
  --readers N    reads at a time (16)
  --writers N    writes at a time (2)
  --rate N       writes per second (20)
  --items N      (24)
  --settle MS    wait before lost invalidations are looked for (1000)
  --history FILE each write, and each item that a read shows, in a line: read|write WHO ITEM VERSION FROM TO
  --json         prints JSON instead of a table
  --allow-stale  exits with 0 although a response was stale

Exit code 1: a response was older than an acknowledged write. 2: nothing could be compared, or the arguments are wrong.
`

const options = /** @type {const} */ ({
  seconds: { type: 'string', default: '10' },
  reads: { type: 'string', default: '0' },
  seed: { type: 'string', default: '1' },
  readers: { type: 'string', default: '16' },
  writers: { type: 'string', default: '2' },
  rate: { type: 'string', default: '20' },
  items: { type: 'string', default: '24' },
  settle: { type: 'string', default: '1000' },
  port: { type: 'string', default: '8000' },
  'max-age': { type: 'string', default: '60' },
  delay: { type: 'string', default: '10' },
  history: { type: 'string', default: '' },
  json: { type: 'boolean', default: false },
  'allow-stale': { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
})

class UsageError extends Error {}

/**
 * @param {string} name
 * @param {string} text
 * @param {number} least
 * @param {number} most
 */
const numberOf = (name, text, least, most) => {
  const value = Number(text)
  if (text === '' || !Number.isInteger(value) || value < least || value > most)
    throw new UsageError(`--${name}: an integer from ${least} to ${most}, not ${text}`)
  return value
}

/** @param {string} text */
const targetOf = (text) => {
  const [, name, address = text] = /^([^=/]+)=(.*)$/.exec(text) ?? []
  if (!/^https?:/.test(address) || !URL.canParse(address)) throw new UsageError(`${text} is not a URL`)
  return { name: name ?? address, url: address }
}

/** @typedef {{ readonly name: string, readonly url: string, readonly nines: number } & import('./drive.js').Result} Row */

/** @type {readonly (readonly [title: string, cell: (row: Row) => string])[]} */
const columns = [
  ['cache', ({ name }) => name],
  ['reads', ({ reads }) => `${reads}`],
  ['hit ratio', ({ reads, hits }) => (reads === 0 ? '-' : (hits / reads).toFixed(3))],
  ['writes', ({ writes }) => `${writes}`],
  ['stale', ({ stale }) => `${stale}`],
  ['longest', ({ longestStaleMs }) => `${Math.round(longestStaleMs)} ms`],
  ['lost', ({ lost }) => `${lost}`],
  ['failed', ({ failed }) => `${failed}`],
  ['a write', ({ medianWriteMs }) => `${medianWriteMs.toFixed(1)} ms`],
  ['nines', (row) => `${row.nines}`],
]

/** A Markdown table. @param {readonly Row[]} rows */
const table = (rows) => {
  const lines = [
    columns.map(([title]) => title),
    columns.map(() => '---'),
    ...rows.map((row) => columns.map(([, cell]) => cell(row))),
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('')
}

const main = async () => {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) {
    process.stdout.write(usage)
    return 0
  }
  if (positionals[0] === 'backend') {
    const { url } = await startBackend({
      port: numberOf('port', values.port, 0, 65_535),
      maxAge: numberOf('max-age', values['max-age'], 0, 86_400),
      delay: numberOf('delay', values.delay, 0, 10_000),
    })
    process.stdout.write(`${url}\n`)
    return undefined
  }
  if (positionals.length === 0) throw new UsageError('a URL is missing')
  const targets = positionals.map(targetOf)
  const run = {
    seed: numberOf('seed', values.seed, 0, 1_000_000),
    seconds: numberOf('seconds', values.seconds, 1, 86_400),
    reads: numberOf('reads', values.reads, 0, 1_000_000_000),
    readers: numberOf('readers', values.readers, 1, 400),
    writers: numberOf('writers', values.writers, 1, 400),
    writesPerSecond: numberOf('rate', values.rate, 1, 100_000),
    items: numberOf('items', values.items, 1, 5_000),
    settle: numberOf('settle', values.settle, 0, 600_000),
  }
  /** @type {Row[]} */
  const rows = []
  const file = values.history === '' ? undefined : createWriteStream(values.history)
  // A file that cannot be written is no stale response: the exit code is another one.
  if (file !== undefined) await once(file, 'open')
  file?.on('error', () => {})
  for (const target of targets) {
    const result = await drive(target.url, { ...run, history: (line) => file?.write(`${line}\n`) })
    rows.push({ ...target, ...result, nines: nines(result) })
  }
  if (file !== undefined) await finished(file.end())
  process.stdout.write(values.json ? `${JSON.stringify({ ...run, caches: rows }, null, 2)}\n` : table(rows))
  if (rows.some(({ reads }) => reads === 0)) return 2
  return values['allow-stale'] || rows.every(({ stale, lost }) => stale + lost === 0) ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  const isUsage = error instanceof UsageError || (error instanceof TypeError && 'code' in error)
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${message}\n${isUsage ? `\n${usage}` : ''}`)
  process.exitCode = 2
}
