import { expect, test } from 'vitest'
import { removedKey } from '../../../src/config/removed-keys.ts'

test('a key that earlier versions had is named with the version and with what to write instead', () => {
  expect(removedKey(['services', 'a', 'responseChecks'])).toMatch(
    /^removed in 0\.1\.0: .*leave the section out$/,
  )
  expect(removedKey(['services', 'a', 'upstream', 'http2'])).toMatch(
    /^removed in 0\.1\.0: upstreams get HTTP\/1\.1 /,
  )
  expect(removedKey(['services', 'a', 'batch', 'extensions'])).toMatch(/^removed in 0\.1\.0: /)
})

test('every other key is unknown', () => {
  expect(removedKey(['services', 'a', 'responseChecks', 'perSecond'])).toBeUndefined()
  expect(removedKey(['batch', 'extensions'])).toBeUndefined()
  expect(removedKey(['services', 'a', 'batch'])).toBeUndefined()
})
