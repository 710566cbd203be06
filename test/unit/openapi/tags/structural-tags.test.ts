import { expect, test } from 'vitest'
import { atOnce } from '../../../../src/http/bodies/turns.ts'
import { inferResources } from '../../../../src/openapi/document/resources.ts'
import { createOpenApiRequests } from '../../../../src/openapi/requests/openapi-requests.ts'
import { createStructuralTagger } from '../../../../src/openapi/tags/structural-tagger.ts'
import { times } from '../../../support/breadth.ts'
import { type Checked, checkTags, type Mode } from '../../cache/structural-service.ts'
import { contractOf } from '../requests/described.ts'

const upTo = (seeds: number): readonly number[] => Array.from({ length: seeds }, (_, seed) => seed)

const checked = (
  mode: Mode,
  seeds: readonly number[],
  plan: Omit<Parameters<typeof checkTags>[2], 'writes'> = {},
): Checked => {
  const all = seeds.map((seed) => checkTags(seed, mode, { writes: 12, ...plan }))
  return {
    stale: all.flatMap(({ stale }) => stale),
    kept: all.reduce((sum, { kept }) => sum + kept, 0),
    unchanged: all.reduce((sum, { unchanged }) => sum + unchanged, 0),
  }
}

const findsStale = (plan: Omit<Parameters<typeof checkTags>[2], 'writes'>): boolean =>
  upTo(8).some((seed) => checked('structural', [seed], plan).stale.length > 0)

const share = ({ kept, unchanged }: Checked): number => kept / unchanged

test('with invalidation: structural no write leaves a stale response, and most others stay', () => {
  const service = checked('service', upTo(times(6, 200)))
  const structural = checked('structural', upTo(times(15, 2_000)))
  if (process.env['SHOW_KEPT'] === '1')
    process.stdout.write(
      `unchanged responses that stay stored after a write: service ${share(service).toFixed(3)}, structural ${share(structural).toFixed(3)} of ${structural.unchanged}\n`,
    )
  expect([service.stale, structural.stale.slice(0, 5)]).toEqual([[], []])
  expect(service.kept).toBe(0)
  expect(share(structural)).toBeGreaterThan(0.5)
})

test.each([
  ['the list of an item is spared', (tag: string) => /\/at\/[a-z]+$/.test(tag)],
  ['the item in front of a list is spared', (tag: string) => /\/at\/[a-z]+\/\d+$/.test(tag)],
  ['what is below an item is spared', (tag: string) => /\/within\/[a-z]+\/\d+$/.test(tag)],
  ['a write of unknown reach drops nothing', (tag: string) => tag === 's/all'],
  ['responses of unknown content are spared', (tag: string) => tag === 's/unknown'],
  ['other names of an item are spared', (tag: string) => tag.includes('/ids/')],
  ['a response that said that there is nothing is spared', (tag: string) => tag.includes('/absent/')],
])('the checker finds stale responses where %s', (_fault, spares) => {
  expect(findsStale({ spares })).toBe(true)
})

test('the checker finds stale responses where the document does not declare what an action changes', () => {
  expect(findsStale({ undeclared: true })).toBe(true)
  expect(checked('service', upTo(5), { undeclared: true }).stale).toEqual([])
})

test('a declared member that has a name and an id is reached by writes under either', () => {
  const id = { name: 'user', in: 'path', required: true, schema: { type: 'string' } }
  const contract = contractOf({
    openapi: '3.1.0',
    info: { title: 'Teams', version: '1' },
    paths: {
      '/users': { get: {} },
      '/users/{user}': { parameters: [id], get: {}, put: {} },
      '/teams': { get: {} },
      '/teams/{team}': {
        parameters: [{ ...id, name: 'team' }],
        get: { 'x-trellis-resource': { members: { '/lead': '/users' } } },
      },
    },
  })
  const requests = atOnce(
    createOpenApiRequests(contract, {
      limits: { queryParameters: 256, jsonDepth: 64 },
      unknownParameters: 'forward',
      trackingParameters: [],
    }),
  )
  const found = (method: string, path: string) => {
    const routeMatch = requests.find(method, path)
    if (routeMatch.kind !== 'found') throw new Error(`${method} ${path}: ${routeMatch.kind}`)
    return routeMatch
  }
  const tagger = createStructuralTagger({ service: 's', resources: inferResources(contract.operations, []) })
  const content = Buffer.from('{"lead":{"user":"ada","id":5}}')
  const stored = tagger.storedTags(found('GET', '/teams/1'), {}, { status: 200, headers: [], content })
  const reaches = (path: string): boolean =>
    tagger
      .writtenTags(found('PUT', path), () => undefined, 'PUT', {
        status: 200,
        headers: [],
        content: undefined,
      })
      .some((tag) => stored.includes(tag))
  expect(['/users/ada', '/users/5', '/users/6'].map(reaches)).toEqual([true, true, false])
})
