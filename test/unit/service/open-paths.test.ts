import { describe, expect, test } from 'vitest'
import { openRows } from '../../../src/service/open.ts'
import { createRouter } from '../../../src/service/router.ts'
import { inOneLine } from '../wordpress/routes/found.ts'

const router = createRouter(openRows)

describe('paths of the open contract keep their spelling', () => {
  test.each([
    ['case stays', '/A/b', '/A/b'],
    ['doubled slashes stay', '/a//b', '/a//b'],
    ['a slash at the end stays', '/a/', '/a/'],
    ['leading zeros stay', '/a/007', '/a/007'],
    ['an encoded slash stays', '/a%2fb', '/a%2Fb'],
    ['encoded delimiters stay', '/a%3Bb%3d%26', '/a%3Bb%3D%26'],
    ['unreserved characters are decoded', '/%61%2D%7e', '/a-~'],
    ['letters beyond ASCII stay encoded', '/%c3%a9', '/%C3%A9'],
    ['a second layer of encoding stays', '/%2561', '/%2561'],
    ['dots beside other text stay', '/..a/b..;c/...', '/..a/b..;c/...'],
    ['what must be encoded is', '/a{b}|c', '/a%7Bb%7D%7Cc'],
    ['a path is never a host', '//elsewhere.example/x', '/elsewhere.example/x'],
    ['nothing is the root', '', '/'],
  ])('%s', (_what, path, sent) => {
    expect(inOneLine(router.find('GET', path))).toBe(`open.any ${sent}`)
  })

  test.each([
    ['/a/../b', 'dot-segment'],
    ['/a/%2e%2e/b', 'dot-segment'],
    ['/a/..%2fb', 'dot-segment'],
    ['/a%2f%2e', 'dot-segment'],
    ['/a/..;/b', 'dot-segment'],
    ['/a/..;x=1', 'dot-segment'],
    ['/a/%2e%2e;/b', 'dot-segment'],
    ['/a/..%3Bx/b', 'dot-segment'],
    ['/a/.;/b', 'dot-segment'],
    ['/a%2f..;', 'dot-segment'],
    ['/a/..%20/b', 'dot-segment'],
    ['/a/..%20;/b', 'dot-segment'],
    ['/a\\b', 'backslash'],
    ['/a%5Cb', 'backslash'],
    ['/a%0d%0ab', 'control-character'],
    ['/a%ff', 'bad-encoding'],
    ['a', 'not-absolute'],
  ])('%s is refused: %s', (path, reason) => {
    expect(inOneLine(router.find('GET', path))).toBe(`refused: ${reason}`)
  })

  test.each(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])('%s matches the row', (method) => {
    expect(router.find(method, '/a').kind).toBe('found')
  })

  test.each(['OPTIONS', 'PROPFIND'])('%s is forwarded', (method) => {
    expect(inOneLine(router.find(method, '/a//b'))).toBe('unlisted /a//b')
  })
})
