import { describe, expect, test } from 'vitest'
import { serverOf } from '../../../../src/gateway/snapshot/build-service.ts'

describe('one server', () => {
  test.each([
    ['the address of localhost', 'http://localhost:8000', 'http://127.0.0.1:8000'],
    ['the other address of localhost', 'http://localhost', 'http://[::1]'],
    ['an address of version 4 in version 6', 'http://127.0.0.1', 'http://[::ffff:127.0.0.1]'],
    ['a name below localhost', 'http://localhost', 'http://wp.localhost'],
    ['letter case', 'http://WordPress.Example', 'http://wordpress.example'],
    ['a final dot', 'http://wordpress.example.', 'http://wordpress.example'],
    ['the default port', 'http://wordpress.example:80', 'http://wordpress.example'],
    ['http and https', 'https://wordpress.example', 'http://wordpress.example'],
    ['http and the port of https', 'http://wordpress.example:443', 'https://wordpress.example'],
    ['https and the port of http', 'https://wordpress.example:80', 'http://wordpress.example'],
    ['the address that stands for all of the machine', 'http://0.0.0.0:8000', 'http://127.0.0.1:8000'],
    ['an address in one number', 'http://2130706433', 'http://127.0.0.1'],
  ])('%s', (_, one, other) => {
    expect(serverOf(one)).toBe(serverOf(other))
  })
})

describe('two servers', () => {
  test.each([
    ['ports', 'http://127.0.0.1:8000', 'http://127.0.0.1:8001'],
    ['a port and the default', 'http://127.0.0.1', 'http://127.0.0.1:8001'],
    ['names', 'http://a.example', 'http://b.example'],
    ['a name that begins so', 'http://localhost', 'http://localhost.example'],
  ])('%s', (_, one, other) => {
    expect(serverOf(one)).not.toBe(serverOf(other))
  })
})
