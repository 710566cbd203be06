import { expect, test } from 'vitest'
import { foreignKey } from '../../../../src/config/schema/removed-keys.ts'

test('a key that earlier versions had is named with the version and with what to write instead', () => {
  expect(foreignKey(['services', 'a', 'responseChecks'])).toMatch(
    /^removed in 0\.1\.0: .*leave the section out$/,
  )
  expect(foreignKey(['services', 'a', 'upstream', 'http2'])).toMatch(
    /^removed in 0\.1\.0: upstreams get HTTP\/1\.1 /,
  )
  expect(foreignKey(['services', 'a', 'batch', 'extensions'])).toMatch(/^removed in 0\.1\.0: /)
})

test('every other key is unknown', () => {
  expect(foreignKey(['services', 'a', 'responseChecks', 'perSecond'])).toBeUndefined()
  expect(foreignKey(['batch', 'extensions'])).toBeUndefined()
  expect(foreignKey(['services', 'a', 'batch'])).toBeUndefined()
})
