import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

type Import = { readonly file: string; readonly from: string; readonly name: string; readonly rest: string }

const files = (await readdir('src', { recursive: true })).filter((file) => file.endsWith('.ts'))
const isPackage = (from: string): boolean => !from.startsWith('.') && !from.startsWith('node:')

/** `a`, `{ b, c as d, type E }` and `* as f`: the local names of values. */
const namesIn = (clause: string): readonly string[] =>
  clause
    .replace(/\{([^}]*)\}/, '$1')
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '' && !part.startsWith('type '))
    .map((part) => part.split(/\s+as\s+|\s*:\s*/).at(-1) as string)

const statement = /^import (?!type )([^'"]+?) from '([^']+)'/gm
const dynamic = /const (\{[^}]*\}|\w+) = await import\('([^']+)'\)/g

const imports = (
  await Promise.all(
    files.map(async (file): Promise<readonly Import[]> => {
      const text = await readFile(`src/${file}`, 'utf8')
      const rest = text.replace(statement, '').replace(dynamic, '')
      return [...text.matchAll(statement), ...text.matchAll(dynamic)]
        .filter(([, , from = '']) => isPackage(from))
        .flatMap(([, clause = '', from = '']) => namesIn(clause).map((name) => ({ file, from, name, rest })))
    }),
  )
).flat()

test('each value that src imports from a package is called, constructed, extended, read or registered there', () => {
  expect(imports.length).toBeGreaterThan(20)
  const uses = (name: string): RegExp =>
    new RegExp(
      `\\b${name}\\s*(?:[(.\`\\]]|<[^=]*>\\()|\\b(?:new|extends|instanceof) ${name}\\b|[(,:=]\\s*${name}\\b`,
    )
  const unused = imports.filter(({ name, rest }) => !uses(name).test(rest))
  expect(unused.map(({ file, from, name }) => `${file}: ${name} of ${from}`)).toEqual([])
})

test('the plugins of the public side are those whose work a test sees', () => {
  const registered = imports.filter(
    ({ file, name, rest }) => file.startsWith('server/') && rest.includes(`register(${name},`),
  )
  // test/gateway/websockets.long.test.ts: "is carried by @fastify/http-proxy".
  expect(registered.map(({ from }) => from).sort()).toEqual(['@fastify/http-proxy'])
})
