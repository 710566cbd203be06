import { expect, test } from 'vitest'
import { times } from '../../support/breadth.ts'
import { type Checked, checkTags, type Mode } from './structural-service.ts'

const checked = (
  mode: Mode,
  services: number,
  plan: Omit<Parameters<typeof checkTags>[2], 'writes'> = {},
): Checked => {
  const seeds = Array.from({ length: services }, (_, seed) => seed)
  const all = seeds.map((seed) => checkTags(seed, mode, { writes: 12, ...plan }))
  return {
    stale: all.flatMap(({ stale }) => stale),
    kept: all.reduce((sum, { kept }) => sum + kept, 0),
    unchanged: all.reduce((sum, { unchanged }) => sum + unchanged, 0),
  }
}

const share = ({ kept, unchanged }: Checked): number => kept / unchanged

test('with invalidation: structural no write leaves an outdated response, and most others stay', () => {
  const service = checked('service', times(6, 200))
  const structural = checked('structural', times(15, 2_000))
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
])('the checker finds outdated responses where %s', (_fault, spares) => {
  expect(checked('structural', 8, { spares }).stale.length).toBeGreaterThan(0)
})

test('the checker finds outdated responses where the document does not declare what an action changes', () => {
  expect(checked('structural', 8, { undeclared: true }).stale.length).toBeGreaterThan(0)
  expect(checked('service', 5, { undeclared: true }).stale).toEqual([])
})
