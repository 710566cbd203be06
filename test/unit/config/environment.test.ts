import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { interpolate } from '../../../src/config/load/source.ts'
import { redactedConfig } from '../../../src/config/redacted-config.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

const read = async (text: string, env: Record<string, string> = {}) => {
  const result = await checkConfig(text, env)
  if (result.kind === 'faults') throw new Error(JSON.stringify(result.faults))
  return result
}
const faultOf = async (text: string, env: Record<string, string> = {}) => {
  const result = await checkConfig(text, env)
  return result.kind === 'ok' ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`)
}

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-config-'))
})

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references as the file spells them */
test.each([
  ['a set variable', '${A}', 'one'],
  ['within a text', 'x-${A}-y', 'x-one-y'],
  ['a default for an unset one', '${NONE:-two}', 'two'],
  ['a default for an empty one', '${EMPTY:-two}', 'two'],
  ['an empty one without a default', '[${EMPTY}]', '[]'],
  ['an empty default', '${NONE:-}', ''],
  ['a default with a colon', '${NONE:-http://a:80}', 'http://a:80'],
  ['a literal one', '$${A}', '${A}'],
  ['a dollar sign alone', '$5', '$5'],
])('reference: %s', (_description, text, expected) => {
  expect(interpolate(text, { A: 'one', EMPTY: '' })).toEqual({ kind: 'text', text: expected })
})

test('a value from the environment cannot add YAML structure', async () => {
  const { config } = await read("publicUrl: '${URL}'", { URL: 'http://a.test' })
  expect(config.publicUrl).toBe('http://a.test')
  expect(await faultOf('trustedProxies: ["${NETS}"]', { NETS: '10.0.0.0/8, 0.0.0.0/0' })).toHaveLength(1)
})

test('numbers and flags are accepted from the environment', async () => {
  const { config } = await read("listen: { port: '${PORT}' }\nadmin: { port: '${NONE:-0}' }", { PORT: '81' })
  expect([config.listen.port, config.admin.port]).toEqual([81, 0])
})

test.each(['1e3', '0x50', ' 80', '80.5', '-1'])('%j is refused as a port', async (PORT) => {
  expect(await faultOf("listen: { port: '${PORT}' }", { PORT })).toHaveLength(1)
})

test('an unset variable without a default is exactly one fault', async () => {
  expect(await faultOf("listen: { port: '${PORT}' }")).toEqual([
    'listen.port: the environment variable PORT is not set, and there is no default (${PORT:-default})',
  ])
})

test('references in keys and comments are not replaced', async () => {
  expect(await faultOf('# ${NONE}\n"${NONE}": 1')).toEqual([
    '${NONE}: unknown key; the keys here are: listen, limits, cors, overload, rateLimits, rateLimitKeys, reload, admin, publicUrl, workers, trustedProxies, log, tracing, metrics, cache, drain, services',
  ])
})
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references as the file spells them */

test('a secret is read from its file, without the line break at the end', async () => {
  const file = join(folder, 'token')
  await writeFile(file, 'from-a-file\n')
  const { config } = await read(`admin: { token: 'file:${file}' }`)
  expect(config.admin.token.reveal()).toBe('from-a-file')
})

test.each([
  [
    'missing',
    "admin: { token: 'file:/nowhere/at/all' }",
    'admin.token: the secret file /nowhere/at/all cannot be read, it does not exist (ENOENT)',
  ],
  [
    'relative',
    "admin: { token: 'file:token' }",
    'admin.token: expected an absolute path: file:/run/secrets/x',
  ],
  [
    'not a secret',
    "publicUrl: 'file:/etc/hostname'",
    'publicUrl: only secrets are read from files: tokens, keys and certificates, marked "Secret" in docs/settings.md',
  ],
])('secret file: %s', async (_description, text, expected) => {
  expect(await faultOf(text)).toEqual([expected])
})

test('no form of the configuration shows a secret', async () => {
  const text = `admin: { token: planted-1 }
cache: { shared: { url: 'redis://:planted-2@a.test', key: [planted-3-${'x'.repeat(32)}, planted-4-${'x'.repeat(32)}] } }`
  const { config, hash } = await read(text)
  const shown = [
    JSON.stringify(config),
    inspect(config, { depth: 10, showHidden: true }),
    JSON.stringify(redactedConfig(config)),
    String(config.admin.token),
  ].join('\n')
  expect(shown).not.toContain('planted')
  expect(JSON.stringify(redactedConfig(config))).toContain('[redacted]')
  expect((await read(text.replaceAll('planted', 'other'))).hash).toBe(hash)
})

test('no fault shows a wrong secret', async () => {
  const faults = await faultOf(
    "admin: { token: [planted] }\ncache: { shared: { url: 'planted://x', key: [planted] } }",
  )
  expect(faults).toHaveLength(3)
  expect(faults.join()).not.toContain('planted')
})
