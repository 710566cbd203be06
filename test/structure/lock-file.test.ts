import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

type Entry = {
  version?: string
  resolved?: string
  link?: boolean
  dev?: boolean
  hasInstallScript?: boolean
  engines?: { node?: string }
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

const lock = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, Entry>
}
const entries = Object.entries(lock.packages)

/** Node's way of finding a package from inside another: the nearest node_modules upwards. */
function isLocked(from: string, name: string): boolean {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    if (lock.packages[`${folder === '' ? '' : `${folder}/`}node_modules/${name}`] !== undefined) return true
    if (!folder.includes('/node_modules/')) return lock.packages[`node_modules/${name}`] !== undefined
  }
}

// npm leaves out what the registry at hand does not carry for other platforms, and npm ci then refuses the whole file.
test('every dependency of every package is locked, those of other platforms too', () => {
  const missing = entries.flatMap(([path, entry]) =>
    Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })
      .filter((name) => !isLocked(path, name))
      .map((name) => `${path} needs ${name}`),
  )
  expect(entries.length).toBeGreaterThan(200)
  expect(missing).toEqual([])
})

test('it names no registry', () => {
  expect(entries.filter(([, entry]) => entry.resolved !== undefined && entry.link !== true)).toEqual([])
})

// npm names every package with an install script that nobody has decided on, which a newcomer reads as telemetry.
test('npm ci warns of no install script: each is refused in package.json', async () => {
  const withScript = entries.filter(([, entry]) => entry.hasInstallScript === true)
  const names = withScript.map(([path]) =>
    path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
  )
  const { allowScripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
    allowScripts: Record<string, boolean>
  }
  expect(allowScripts).toEqual(Object.fromEntries(names.map((name) => [name, false])))
})

/** Is the oldest supported Node within a range of `engines`? Alternatives are `>=20`, `^20.19.0`, `20` or `*`. */
const admits = (range: string, [major, minor]: readonly [number, number]): boolean =>
  range.split('||').some((alternative) => {
    const [, operator, first, second = '0'] = /^\s*(>=|\^)? ?(\d+)(?:\.(\d+))?/.exec(alternative) ?? []
    if (first === undefined) return alternative.trim() === '*'
    const isSameMajor = Number(first) === major && Number(second) <= minor
    return isSameMajor || (operator === '>=' && Number(first) < major)
  })

test('npm ci warns of no package that refuses the oldest Node that Trellis supports (EBADENGINE)', () => {
  const refusing = entries
    .filter(([, { engines }]) => engines?.node !== undefined && !admits(engines.node, [20, 19]))
    .map(([path, { engines }]) => `${path} ${engines?.node}`)
  expect(admits('>=22.15.0', [20, 19])).toBe(false)
  expect(refusing).toEqual([])
})

test('every package of dependencies has a caller in src, and src imports no other package', async () => {
  const files = (await readdir('src', { recursive: true })).filter((file) => file.endsWith('.ts'))
  const texts = await Promise.all(files.map((file) => readFile(`src/${file}`, 'utf8')))
  const imports = texts.flatMap((text) => [
    ...text.matchAll(/(?:from|import\() ?'((?:@[^/']+\/)?[^./'@][^/']*)(?:\/[^']*)?'/g),
  ])
  const names = imports.map(([, name]) => name ?? '')
  const imported = new Set(names.filter((name) => /^@?[a-z][\w./-]*$/.test(name)))
  const { dependencies } = JSON.parse(await readFile('package.json', 'utf8')) as {
    dependencies: Record<string, string>
  }
  // The build copies two files of it.
  expect(Object.keys(dependencies).sort()).toEqual([...imported, 'swagger-ui-dist'].sort())
})
