import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createClientOf } from '../../../../src/server/access/client-address.ts'

const socket = { remoteAddress: '10.0.0.1' } as Socket

/** The client of a request behind proxies that are trusted, and how many addresses were looked at. */
const clientOf = (headers: Readonly<Record<string, string>>) => {
  let looked = 0
  const isTrusted = (address: string): boolean => {
    looked += 1
    return address.startsWith('10.')
  }
  const { address } = createClientOf(isTrusted)(socket, headers)
  return { address, looked }
}

test.each([
  ['x-forwarded-for', '192.0.2.9, 192.0.2.1, 10.0.0.2', '192.0.2.1'],
  ['x-forwarded-for', ',192.0.2.1', '192.0.2.1'],
  ['x-forwarded-for', '', '10.0.0.1'],
  ['x-forwarded-for', ',', '10.0.0.1'],
  ['forwarded', 'for="open, for=192.0.2.1;proto=https', '192.0.2.1'],
  ['forwarded', 'for="192.0.2.9, a", for=192.0.2.1, for=10.0.0.2', '192.0.2.1'],
  ['forwarded', `for="${'a'.repeat(2_000)}", for=10.0.0.2`, '10.0.0.1'],
])('%s: %s names the client %s', (name, value, address) => {
  expect(clientOf({ [name]: value }).address).toBe(address)
})

test.each([
  ['x-forwarded-for', '10.0.0.2'],
  ['forwarded', 'for=10.0.0.2'],
])('of thousands of proxies in %s, 32 are looked at', (name, hop) => {
  expect(clientOf({ [name]: Array.from({ length: 2_000 }, () => hop).join(',') }).looked).toBeLessThan(40)
})

test('of a header full of commas, the last part is looked at', () => {
  expect(clientOf({ 'x-forwarded-for': `${','.repeat(15_000)}192.0.2.1` })).toEqual({
    address: '192.0.2.1',
    looked: 2,
  })
})
