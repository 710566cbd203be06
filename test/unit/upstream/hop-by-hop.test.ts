import { expect, test } from 'vitest'
import { endToEndHeaders } from '../../../src/http/headers/forwardable-headers.ts'

test('end-to-end headers pass, in their order and spelling', () => {
  const lines = ['Content-Type', 'text/plain', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Own', '']
  expect(endToEndHeaders(lines)).toEqual(lines)
})

test.each([
  'Connection',
  'Keep-Alive',
  'Proxy-Connection',
  'Proxy-Authenticate',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
])('%s of a response ends here', (name) => {
  expect(endToEndHeaders([name, 'x', 'ETag', '"1"'])).toEqual(['ETag', '"1"'])
})

test('what a response names in Connection ends here, but not what every recipient needs', () => {
  const lines = [
    'Connection',
    'close, X-Hop ,,cache-control',
    'X-Hop',
    '1',
    'connection',
    'X-More',
    'X-More',
    '2',
    'Cache-Control',
    'private',
  ]
  expect(endToEndHeaders(lines)).toEqual(['Cache-Control', 'private'])
})
