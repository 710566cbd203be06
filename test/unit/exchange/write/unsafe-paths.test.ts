import { expect, test } from 'vitest'
import { unsafePaths } from '../../../../src/exchange/write/unsafe-paths.ts'

const unsafe = {
  target: '/things/1',
  url: 'http://upstream.test/things/1',
  roots: ['http://upstream.test', 'http://10.0.0.9/base', 'https://public.test/mount'],
  publicRoot: 'https://public.test/mount',
  mount: '/mount',
}
const responded = (status: number, ...headers: string[]) => ({ status, headers, content: undefined })

test.each([
  ['its own target', responded(200), ['/mount/things/1']],
  [
    'Location on the same origin',
    responded(201, 'Location', '/things/2?x=1'),
    ['/mount/things/1', '/mount/things/2?x=1', '/things/2?x=1'],
  ],
  [
    'Location as an absolute URL',
    responded(201, 'Location', 'http://upstream.test/b'),
    ['/mount/things/1', '/mount/b'],
  ],
  [
    'not a Location on another origin',
    responded(201, 'Location', 'http://other.test/b'),
    ['/mount/things/1'],
  ],
  [
    'not a Location on another port',
    responded(201, 'Location', 'http://upstream.test:81/b'),
    ['/mount/things/1'],
  ],
  [
    'Location under another target',
    responded(201, 'Location', 'http://10.0.0.9/base/b'),
    ['/mount/things/1', '/mount/b'],
  ],
  [
    'Location under the public URL',
    responded(201, 'Location', 'https://public.test/mount/b#x'),
    ['/mount/things/1', '/mount/b'],
  ],
  [
    'Location beside the mount, of another service',
    responded(201, 'Location', 'https://public.test/mountain/b'),
    ['/mount/things/1', '/mountain/b'],
  ],
  ['Content-Location', responded(200, 'Content-Location', '../c'), ['/mount/things/1', '/mount/c']],
  ['not a Location that is no URL', responded(200, 'Location', 'http://[bad'), ['/mount/things/1']],
  ['nothing after a refusal', responded(403, 'Location', '/x'), []],
  ['its own target after a server error', responded(500), ['/mount/things/1']],
  ['its own target without an answer', undefined, ['/mount/things/1']],
])('an unsafe request invalidates %s', (_, response, expected) => {
  expect(unsafePaths(unsafe, response)).toEqual(expected)
})

test('by the RFC alone a server error spares what is stored', () => {
  expect(unsafePaths({ ...unsafe, sparedByServerError: true }, responded(500))).toEqual([])
})
