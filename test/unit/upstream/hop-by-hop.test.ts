import { expect, test } from 'vitest'
import { credentialFields } from '../../../src/http/credential-fields.ts'
import { endToEndFields, forwardableFields } from '../../../src/http/hop-by-hop.ts'

const nothing: ReadonlySet<string> = new Set()
const sent = (
  fields: Record<string, string | string[]>,
  withheld = nothing,
): Record<string, string | undefined> => {
  const lines = forwardableFields(fields, withheld)
  return Object.fromEntries(lines.flatMap((line, i) => (i % 2 === 0 ? [[line, lines[i + 1]]] : [])))
}

test('end-to-end fields pass, in their order and spelling', () => {
  const lines = ['Content-Type', 'text/plain', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'X-Own', '']
  expect(endToEndFields(lines)).toEqual(lines)
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
  expect(endToEndFields([name, 'x', 'ETag', '"1"'])).toEqual(['ETag', '"1"'])
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
  expect(endToEndFields(lines)).toEqual(['Cache-Control', 'private'])
})

test.each([
  'connection',
  'keep-alive',
  'te',
  'transfer-encoding',
  'upgrade',
  'trailer',
  'proxy-authorization',
  'proxy-connection',
  'proxy',
  'host',
  'content-length',
  'expect',
  'x-http-method-override',
  'x-http-method',
  'x-original-url',
  'x-rewrite-url',
  'x-host',
  'forwarded',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-prefix',
  'x-forwarded-port',
  'x-forwarded-anything',
  'x-real-ip',
  'true-client-ip',
  'x_forwarded_host',
  'x_http_method_override',
  'x_forwarded-for',
  'http2-settings',
  ':authority',
])('%s of a request is not sent on', (name) => {
  expect(sent({ [name]: 'evil', accept: '*/*' })).toEqual({ accept: '*/*' })
})

test('the rest is sent on, credentials included, except what is withheld', () => {
  const fields = {
    authorization: 'Bearer x',
    cookie: 'a=1',
    'content-type': 'text/plain',
    'accept-encoding': 'br',
    'x-a': ['1', '2'],
    range: 'bytes=0-1',
  }
  expect(sent(fields, new Set(['range']))).toEqual({
    authorization: 'Bearer x',
    cookie: 'a=1',
    'content-type': 'text/plain',
    'x-a': '1, 2',
  })
})

test('Connection names away the fields of the client, never those of the message', () => {
  const fields = {
    connection: 'x-a, Via, X-Forwarded-For, Authorization, Content-Type',
    'x-a': '1',
    'content-type': 'text/plain',
    authorization: 'Bearer x',
  }
  expect(sent(fields)).toEqual({ 'content-type': 'text/plain', authorization: 'Bearer x' })
})

test('a client cannot speak for the gateway', () => {
  const spoken = { via: '1.0 evil', 'x-forwarded-for': '10.0.0.1', x_request_id: 'x', 'x-request-id': 'y' }
  expect(sent(spoken)).toEqual({})
})

test('a field named like a part of every object is a field', () => {
  const fields = JSON.parse('{"__proto__":"a","constructor":"b"}')
  expect(forwardableFields(fields, nothing)).toEqual(['__proto__', 'a', 'constructor', 'b'])
})

test.each([...credentialFields, 'x-wp-nonce'])(
  '%s goes on as it is, and not with underscores, under which nobody looks for it',
  (name) => {
    const spelled = name.replaceAll('-', '_')
    expect(sent({ [name]: 'secret' })).toEqual({ [name]: 'secret' })
    if (spelled !== name) expect(sent({ [spelled]: 'secret' })).toEqual({})
  },
)
