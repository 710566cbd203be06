import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { redactedConfig } from '../../../src/config/redacted-config.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'

type Tree = { readonly [key: string]: unknown }

const checked = (changes: Tree, contract = 'open') =>
  checkConfig(
    stringify({
      services: { a: { contract, mount: '/', upstream: { targets: ['http://b'] }, changes } },
    }),
    {},
  )

test.each<[string, Tree, RegExp]>([
  ['a short token', { token: 'x'.repeat(15) }, /changes\.token: expected at least 16 characters/],
  [
    'a poll without a pause',
    { token: 'x'.repeat(16), poll: '10ms' },
    /changes\.poll: expected 0s, or at least/,
  ],
  ['a poll longer than a timer', { poll: '30d' }, /changes\.poll: expected at most 12d/],
  ['an unknown setting', { ttl: '1h' }, /changes\.ttl: /],
])('%s is a fault', async (_, changes, expected) => {
  const result = await checked(changes)
  const faults = result.kind === 'ok' ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`)
  expect(faults).toEqual([expect.stringMatching(expected)])
})

test('the token is hidden, and the lifetime is a week unless it is set', async () => {
  const result = await checked({ token: 'token-of-the-service' }, 'site')
  if (result.kind !== 'ok') throw new Error('faults')
  expect(redactedConfig(result.config)).toMatchObject({
    services: [{ changes: { token: '[redacted]', ttlWhileHeardMs: 604_800_000 } }],
  })
})

test('the token may be in a file', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'trellis-token-')), 'token')
  await writeFile(file, 'token-of-the-service\n')
  const result = await checked({ token: `file:${file}` })
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result.faults))
  expect(result.config.services[0]?.changes?.token.reveal()).toBe('token-of-the-service')
})
