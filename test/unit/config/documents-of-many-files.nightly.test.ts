import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readApiDocument } from '../../../src/openapi/document/read-document.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-files-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const write = async (name: string, value: unknown): Promise<void> =>
  writeFile(join(folder, name), JSON.stringify(value))

test('a document may consist of some thousand files: their bytes are bounded, not their number', async () => {
  const count = 3_000
  const paths = Object.fromEntries(
    Array.from({ length: count }, (_, at) => [`/things${at}`, { $ref: `thing${at}.json` }]),
  )
  for (let at = 0; at < count; at += 1)
    await write(`thing${at}.json`, { get: { operationId: `get${at}`, responses: {} } })
  await write('openapi.json', { openapi: '3.1.0', info: { title: 'x', version: '1' }, paths })
  const loaded = await readApiDocument(join(folder, 'openapi.json'))
  expect(loaded).toMatchObject({ kind: 'loaded' })
  if (loaded.kind !== 'loaded') return
  expect(loaded.files).toHaveLength(count + 1)
  const { rows, operations } = loaded.document.contract
  expect([rows.length, operations.at(-1)?.operationId]).toEqual([count, `get${count - 1}`])
})

test('a file that is named and missing counts as well', async () => {
  const $refs = Array.from({ length: 70_000 }, (_, at) => ({ $ref: `none${at}.json` }))
  await write('openapi.json', { openapi: '3.1.0', info: { title: 'x', version: '1' }, paths: {}, $refs })
  expect(await readApiDocument(join(folder, 'openapi.json'))).toEqual({
    kind: 'faults',
    messages: ['openapi.json: is larger than 67108864 bytes, with the files that it refers to'],
  })
})
