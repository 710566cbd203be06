import { expect, test } from 'vitest'
import {
  forwardableField,
  forwardableFields,
  isProxyField,
  namedAway,
} from '../../../src/http/forwardable-fields.ts'
import type { RequestFields } from '../../../src/http/message.ts'

const nothing: ReadonlySet<string> = new Set()

/** What goes to the upstream; asked for all at once and one by one, which must agree. */
const sent = (fields: RequestFields, withheld = nothing): Record<string, string | undefined> => {
  const lines = forwardableFields(fields, withheld)
  const all = Object.fromEntries(lines.flatMap((line, i) => (i % 2 === 0 ? [[line, lines[i + 1]]] : [])))
  const unsent = { named: namedAway(fields), withheld }
  for (const name of Object.keys(fields)) expect(forwardableField(fields, name, unsent)).toBe(all[name])
  return all
}

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
  'x-http-host-override',
  'front-end-https',
  'x-url-scheme',
  'x-scheme',
  'x-override-url',
  'x-method',
  'x-forwarded',
  'forwarded-for',
  'fastly-client-ip',
  'x-azure-clientip',
  'x-appengine-user-ip',
  'x-proxyuser-ip',
  'wl-proxy-client-ip',
  'x-remote-addr',
  'x-originating-ip',
  'x-middleware-subrequest',
  'x-middleware-prefetch',
  'x-invoke-status',
  'x-invoke-error',
  'x-invoke-output',
  'x-react-router-spa-mode',
  'x-react-router-prerender-data',
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

test('a field named like a part of every object is a field, and without it there is none', () => {
  const fields = JSON.parse('{"constructor":"b"}')
  expect(sent(fields)).toEqual({ constructor: 'b' })
  expect(forwardableField({}, 'constructor', { named: nothing, withheld: nothing })).toBeUndefined()
})

test.each(['accept_language', 'if_none_match', 'user_agent', 'x_own', 'x.own', 'x~own', "x'own", 'x!own'])(
  '%s does not go on: an upstream could read it as another field',
  (name) => expect(sent(JSON.parse(`{"${name}":"x"}`))).toEqual({}),
)

test.each([
  ['x-real-ip', true],
  ['via', true],
  ['forwarded', true],
  ['x-forwarded-for', true],
  ['cf-connecting-ip', true],
  ['user-agent', false],
  ['host', false],
])('%s says that a proxy passed the request on: %s', (name, expected) => {
  expect(isProxyField(name)).toBe(expected)
})
