import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiDocument } from '../../../src/openapi/document/api-document.ts'
import { loadApiDocument } from '../../../src/openapi/document/read-document.ts'

/** Longer than what the parser with positions reads alone. */
const filler = `\n# ${'x'.repeat(300 * 1024)}\n`

const document = (paths: string): string => `openapi: 3.1.0
info: { title: A, version: '1' }
paths:
${paths}`

const item = `  /a:
    get:
      parameters:
        - { name: from, in: query, schema: { type: string, default: 2026-01-01 } }
        - { name: yes, in: query, schema: { type: string, enum: [yes, 012] } }
      responses: { '200': { description: ok } }
`

describe('a long YAML document', () => {
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'trellis-yaml-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const read = async (name: string, text: string) => {
    const file = join(folder, name)
    await writeFile(file, text)
    const loaded = await loadApiDocument(file)
    return loaded.kind === 'loaded' ? new ApiDocument(loaded.document).bundle.files[name] : loaded.messages
  }

  test.each([
    ['with dates, leading zeros and words', item],
    [
      'with an alias',
      `${item}  /b: &item\n    get: { responses: { '200': { description: b } } }\n  /c: *item\n`,
    ],
    [
      'with a merge',
      `${item}  /b:\n    <<: { summary: merged }\n    get: { responses: { '200': { description: b } } }\n`,
    ],
  ])('%s is read as a short one is', async (_form, paths) => {
    const short = await read('api.yaml', document(paths))
    expect(short).toMatchObject({ openapi: '3.1.0' })
    expect(await read('api.yaml', document(paths) + filler)).toEqual(short)
  })

  test('a repeated key and a missing bracket are reported with their lines', async () => {
    const twice = document(`${item}${item}`) + filler
    expect(await read('api.yaml', twice)).toEqual([expect.stringMatching(/^api\.yaml:10:3 .*unique/i)])
    const open = document(item).replace("version: '1' }", "version: '1'") + filler
    expect(await read('api.yaml', open)).toEqual([
      expect.stringMatching(/^api\.yaml:\d+:\d+ not YAML or JSON/),
    ])
  })

  test('aliases of aliases do not expand without a limit', async () => {
    const levels = Array.from({ length: 12 }, (_, i) => `x-${i + 1}: &a${i + 1} [${`*a${i},`.repeat(9)}]`)
    const text = `${document(item)}x-0: &a0 [1]\n${levels.join('\n')}\n${filler}`
    expect(await read('api.yaml', text)).toEqual([expect.stringMatching(/alias/i)])
  })
})
