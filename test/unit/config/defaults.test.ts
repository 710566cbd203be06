import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { configWarnings } from '../../../src/config/warnings.ts'

const load = async (file: string | undefined) => {
  const result = await loadConfig({ file, env: {} })
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result
}

test('config/gateway.yaml spells out what an empty file means', async () => {
  const [spelled, empty] = [await load('config/gateway.yaml'), await load(undefined)]
  expect(spelled.config).toEqual(empty.config)
  expect(spelled.hash).toBe(empty.hash)
  expect(configWarnings(empty.config)).toEqual([])
})

test.each(['config/production.example.yaml', 'config/wordpress.example.yaml'])(
  '%s is valid',
  async (file) => {
    expect((await load(file)).hash).toMatch(/^[0-9a-f]{16}$/)
  },
)

test('without a file both services are embedded', async () => {
  const { config } = await load(undefined)
  expect(config.services.map(({ name, mount, upstream }) => [name, mount, upstream.targets])).toEqual([
    ['plants', '/', 'embedded'],
    ['site', '/index.php/site-json', 'embedded'],
  ])
  expect(config.publicUrl).toBe('http://127.0.0.1:8080')
})

test('the config is frozen to its leaves', async () => {
  const { config } = await load(undefined)
  const open: string[] = []
  const visit = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    if (!Object.isFrozen(value)) open.push(path)
    for (const [key, inner] of Object.entries(value)) visit(inner, `${path}.${key}`)
  }
  visit(config, 'config')
  expect(open).toEqual([])
})

test('a file that cannot be read is a fault', async () => {
  expect(await loadConfig({ file: 'config/nowhere.yaml', env: {} })).toEqual({
    kind: 'faults',
    faults: [{ path: '', line: 1, column: 1, message: 'the file cannot be read (ENOENT)' }],
  })
})
