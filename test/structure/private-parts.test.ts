import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Members that begin with `_` of anything, methods of objects that are replaced, and what else its owner does not document; Ajv documents two paths below `dist`. */
const forms = [
  /\.(_(?!_)\w+)\b/g,
  /(?<!this)\.((?:push|write|read|flushSync) =)(?!=)/g,
  /\.(listeners\('\w+'\))/g,
  /\.(removeAllListeners\('\w+'\))/g,
  /\.(prototype\.(?!hasOwn|propertyIs)\w+\.call)\(/g,
  /(setFlagsFromString)\(/g,
  /'(internalMessage)'/g,
  /(process\.binding)/g,
  /from '((?!ajv\/dist\/2020|ajv\/dist\/types|\.|node:)(?:@[\w-]+\/)?[\w-]+\/(?:lib|src|dist)\/[^']*)'/g,
]

test('the table of decision 0022 names every private part of Node and packages', async () => {
  const found: string[] = []
  const names = await readdir('src', { recursive: true })
  for (const file of names.filter((name) => name.endsWith('.ts')).map((name) => join('src', name))) {
    const code = (await readFile(file, 'utf8')).replace(/^\s*(?:\/\*\*?|\*|\/\/).*$/gm, '')
    for (const form of forms) for (const [, part] of code.matchAll(form)) found.push(`${file} ${part}`)
  }
  const decision = await readFile('docs/decisions/0022-yardsticks.md', 'utf8')
  const [, table = ''] = decision.split('## Private parts')
  const named = [...table.matchAll(/^\| (src\/\S+) \| (.*?) \|/gm)].flatMap(([, file, parts = '']) =>
    [...parts.matchAll(/`([^`]+)`/g)].map(([, part]) => `${file} ${part}`),
  )
  expect([...new Set(found)].sort()).toEqual(named.sort())
})
