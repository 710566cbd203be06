import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { checkCommandLine } from './command-line.ts'
import { measureHouse } from './house-measures.ts'

// npm run bench:house: numbers of the code against their limits in bench/limits.json. Exits with 1 when a number is above its
// limit, or a limit above that of an earlier commit. `-- --places`: where; `-- --lower`: lowers the limits to the numbers.

const flag = { type: 'boolean' } as const
checkCommandLine('npm run bench:house -- [--places | --lower]', { places: flag, lower: flag })
process.chdir(fileURLToPath(new URL('../', import.meta.url)))
const file = 'bench/limits.json'
type Limits = Readonly<Record<string, number>>

/** Limits of the commit before the last one that changed them; none in a clone without history. */
const earlierLimits = (): Limits => {
  try {
    const git = (...words: string[]) =>
      execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const [last = '', before = last] = git('rev-list', '-2', 'HEAD', '--', file).trim().split('\n')
    const isCommitted = git('status', '--porcelain', '--', file).trim() === ''
    return JSON.parse(git('show', `${isCommitted ? before : last}:${file}`)) as Limits
  } catch {
    return {}
  }
}

const limits = JSON.parse(await readFile(file, 'utf8')) as Limits
const earlier = earlierLimits()
const measures = await measureHouse()

if (process.argv.includes('--lower')) {
  const lowered = measures.map(({ name, places }) => [
    name,
    Math.min(limits[name] ?? Infinity, places.length),
  ])
  await writeFile(file, `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`)
}
for (const { name, places } of measures) {
  const limit = limits[name] ?? 0
  const isAbove = places.length > limit
  console.log(`${String(places.length).padStart(6)}  ${name}${isAbove ? ` (limit: ${limit})` : ''}`)
  if (process.argv.includes('--places')) for (const place of places) console.log(`          ${place}`)
  if (isAbove) process.exitCode = 1
}
for (const [name, limit] of Object.entries(limits)) {
  if (limit <= (earlier[name] ?? Infinity)) continue
  console.log(`The limit of "${name}" was ${earlier[name]}: limits are only lowered.`)
  process.exitCode = 1
}
