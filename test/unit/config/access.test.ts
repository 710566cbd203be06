import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { redactedConfig } from '../../../src/config/redacted-config.ts'
import { checkConfig, configWarnings } from '../../../src/gateway/load-config.ts'
import { createKey, keyLine } from '../../support/issuer.ts'

type Tree = { readonly [key: string]: unknown }

let folder: string
const fileWith = async (name: string, text: string): Promise<string> => {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trellis-access-config-'))
})

const url = 'https://id.example/jwks.json'
const jwt = (more: Tree = {}): Tree => ({
  jwks: url,
  issuer: 'https://id.example',
  audience: 'blog',
  ...more,
})
const checked = (access: Tree, more: Tree = {}) =>
  checkConfig(
    stringify({
      services: { a: { contract: 'open', mount: '/', upstream: { targets: ['http://b'] }, access } },
      ...more,
    }),
    {},
  )
const faultsOf = async (access: Tree, more: Tree = {}): Promise<string[]> => {
  const result = await checked(access, more)
  return result.kind === 'ok'
    ? []
    : result.faults.map(({ path, message }) => `${path.replace('services.a.access.', '')}: ${message}`)
}

describe('access', () => {
  test.each<[string, Tree, RegExp]>([
    ['a symmetric algorithm', { jwt: jwt({ algorithms: ['HS256'] }) }, /^jwt.algorithms\[0\]: .*symmetric/],
    ['the algorithm none', { jwt: jwt({ algorithms: ['none'] }) }, /^jwt.algorithms\[0\]: /],
    ['no algorithm', { jwt: jwt({ algorithms: [] }) }, /^jwt.algorithms: /],
    ['no issuer', { jwt: { jwks: url, audience: 'a' } }, /^jwt.issuer: is required/],
    ['an empty audience', { jwt: jwt({ audience: '' }) }, /^jwt.audience: /],
    ['no audience', { jwt: { jwks: url, issuer: 'a' } }, /^jwt.audience: is required/],
    ['a wide leeway', { jwt: jwt({ leeway: '1h' }) }, /^jwt.leeway: must be at most 10m/],
    ['a refresh without a pause', { jwt: jwt({ refresh: '0s' }) }, /^jwt.refresh: must be at least 1s/],
    [
      'keys that are neither URL nor file',
      { jwt: jwt({ jwks: 'id.example' }) },
      /^jwt.jwks: expected a JWKS/,
    ],
    ['a URL with credentials', { jwt: jwt({ jwks: 'https://u:p@id.example/' }) }, /^jwt.jwks: .*credentials/],
    ['a file that is not there', { jwt: jwt({ jwks: 'file:/nowhere' }) }, /^jwt.jwks: .*does not exist/],
    [
      'a private key',
      { jwt: jwt({ jwks: '{"keys":[{"kty":"EC","d":"x"}]}' }) },
      /^jwt.jwks: .*no public key/,
    ],
    ['a claim as Host', { jwt: jwt({ forward: { sub: 'Host' } }) }, /^jwt.forward.sub: has its own meaning/],
    [
      'a claim as X-Forwarded-For',
      { jwt: jwt({ forward: { sub: 'X-Forwarded-For' } }) },
      /^jwt.forward.sub: has its own meaning/,
    ],
    [
      'a claim as Content-Length',
      { jwt: jwt({ forward: { sub: 'Content-Length' } }) },
      /^jwt.forward.sub: has its own meaning/,
    ],
    [
      'a claim as Authorization',
      { jwt: jwt({ forward: { sub: 'Authorization' } }) },
      /^jwt.forward.sub: .*Authorization/,
    ],
    [
      'a claim in a header with _',
      { jwt: jwt({ forward: { sub: 'X_User' } }) },
      /^jwt.forward.sub: expected the name/,
    ],
    [
      'two claims in one header',
      { jwt: jwt({ forward: { sub: 'X-A', name: 'x-a' } }) },
      /^jwt.forward.name: must differ/,
    ],
    [
      'a claim in the header of the token',
      { jwt: jwt({ header: 'X-A', forward: { sub: 'X-A' } }) },
      /^jwt.forward.sub: must differ/,
    ],
    ['a token in Cookie', { jwt: jwt({ header: 'Cookie' }) }, /^jwt.header: has its own meaning/],
    [
      'a file of API keys that is not there',
      { apiKeys: { file: '/nowhere' } },
      /^apiKeys.file: .*does not exist/,
    ],
    [
      'API keys in the configuration itself',
      { apiKeys: { file: keyLine('a', 'b') } },
      /^apiKeys.file: expected an absolute path/,
    ],
    ['an address that is none', { allow: ['10.0.0.0/33'] }, /^allow\[0\]: the prefix length/],
    ['a host name', { deny: ['localhost'] }, /^deny\[0\]: expected an IP address/],
    ['required: sometimes', { jwt: jwt({ required: 'sometimes' }) }, /^jwt.required: expected one of/],
    ['an unknown key', { jwt: jwt({ audiences: 'a' }) }, /^jwt.audiences: unknown key/],
  ])('%s is a fault', async (_description, access, fault) => {
    expect(await faultsOf(access)).toEqual([expect.stringMatching(fault)])
  })

  test.each([
    ['ann', /^apiKeys.file: line 1 of the file is not name:sha256-hex, as of echo .*sha256sum/],
    [`# keys\n\n${keyLine('ann', 'k')}\nbob:00`, /^apiKeys.file: line 4 of the file is not/],
    [`${keyLine('ann', 'k')}\n${keyLine('bob', 'k')}`, /^apiKeys.file: line 2 of the file repeats/],
    ['# none\n', /^apiKeys.file: the file has no key$/],
  ])('a file of API keys with %j is a fault that names the line and not the key', async (text, fault) => {
    const file = await fileWith('keys', text)
    expect(await faultsOf({ apiKeys: { file } })).toEqual([expect.stringMatching(fault)])
  })

  test('API keys cannot be in Authorization, which is not theirs alone', async () => {
    const file = await fileWith('good', keyLine('ann', 'k'))
    expect(await faultsOf({ apiKeys: { file, header: 'Authorization' } })).toEqual([
      'apiKeys.header: cannot be Authorization; use another header',
    ])
  })

  test('the file of API keys is watched, hidden, and may be as large as 1 MiB', async () => {
    const many = Array.from({ length: 5_000 }, (_, index) => keyLine(`name-${index}`, `key-${index}`)).join(
      '\n',
    )
    const file = await fileWith('many', many)
    const result = await checked({ apiKeys: { file } })
    if (result.kind !== 'ok') throw new Error('the configuration has faults')
    expect(result.files).toContain(file)
    expect(JSON.stringify(redactedConfig(result.config))).not.toContain('name-1')
    const larger = await fileWith('larger', `${many}\n${'#'.repeat(1024 * 1024)}`)
    expect(await faultsOf({ apiKeys: { file: larger } })).toEqual([expect.stringContaining('larger than')])
  })

  test('keys of an issuer can be a file, and then the file is watched', async () => {
    const { jwk } = await createKey('first')
    const file = await fileWith('jwks.json', JSON.stringify({ keys: [jwk] }))
    expect(await checked({ jwt: jwt({ jwks: `file:${file}` }) })).toMatchObject({ kind: 'ok', files: [file] })
  })

  test('a limit counts only by what the service verifies', async () => {
    const by = (text: string) => ({ rateLimits: [{ name: 'all', service: 'a', by: text, max: 1 }] })
    expect(await faultsOf({ jwt: jwt() }, by('claim:sub'))).toEqual([])
    expect(await faultsOf({}, by('claim:sub'))).toEqual([
      'rateLimits[0].by: requires access.jwt of the service',
    ])
    expect(await faultsOf({}, by('key'))).toEqual([
      'rateLimits[0].by: requires access.apiKeys of the service',
    ])
    expect(await faultsOf({}, by('claim:'))).toEqual([
      expect.stringContaining('rateLimits[0].by: expected one of'),
    ])
  })

  test('keys over plain http from another machine are a warning', async () => {
    const warned = async (jwks: string) => {
      const result = await checked({ jwt: jwt({ jwks }) })
      return result.kind === 'ok' ? configWarnings(result.config).map(({ path }) => path) : []
    }
    expect(await warned('http://id.example/jwks')).toEqual(['services.a.access.jwt.jwks'])
    expect(await warned('http://127.0.0.1/jwks')).toEqual([])
    expect(await warned(url)).toEqual([])
  })

  test('caches in front of the gateway, which do not ask who reads, are a warning', async () => {
    const warned = async (access: object) => {
      const receivers = [{ type: 'webhook', url: 'http://127.0.0.1:9', secret: 'x'.repeat(32) }]
      const upstream = { targets: ['http://127.0.0.1:9'] }
      const service = { contract: 'open', mount: '/', upstream, access, downstream: { receivers } }
      const result = await checkConfig(JSON.stringify({ services: { a: service } }), {})
      return result.kind === 'ok' ? configWarnings(result.config).map(({ path }) => path) : result.faults
    }
    expect(await warned({ allow: ['192.0.2.1'] })).toEqual(['services.a.downstream'])
    expect(await warned({ deny: ['192.0.2.1'] })).toEqual([])
  })
})
