import { expect, test } from 'vitest'
import {
  forwardableHeader,
  forwardableHeaders,
  isProxyHeader,
  namedAway,
} from '../../../../src/http/headers/forwardable-headers.ts'
import type { RequestHeaders } from '../../../../src/http/headers/header-lines.ts'

const nothing: ReadonlySet<string> = new Set()

/** What goes to the upstream; asked for all at once and one by one, which must agree. */
const sent = (headers: RequestHeaders, stripped = nothing): Record<string, string | undefined> => {
  const lines = forwardableHeaders(headers, stripped)
  const all = Object.fromEntries(lines.flatMap((line, i) => (i % 2 === 0 ? [[line, lines[i + 1]]] : [])))
  const unsent = { named: namedAway(headers), stripped }
  for (const name of Object.keys(headers)) expect(forwardableHeader(headers, name, unsent)).toBe(all[name])
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

test('the rest is sent on, credentials included, except what is stripped', () => {
  const headers = {
    authorization: 'Bearer x',
    cookie: 'a=1',
    'content-type': 'text/plain',
    'accept-encoding': 'br',
    'x-a': ['1', '2'],
    range: 'bytes=0-1',
  }
  expect(sent(headers, new Set(['range']))).toEqual({
    authorization: 'Bearer x',
    cookie: 'a=1',
    'content-type': 'text/plain',
    'x-a': '1, 2',
  })
})

test('Connection names away the headers of the client, never those of the message', () => {
  const headers = {
    connection: 'x-a, Via, X-Forwarded-For, Authorization, Content-Type',
    'x-a': '1',
    'content-type': 'text/plain',
    authorization: 'Bearer x',
  }
  expect(sent(headers)).toEqual({ 'content-type': 'text/plain', authorization: 'Bearer x' })
})

test('a client cannot speak for the gateway', () => {
  const spoken = { via: '1.0 evil', 'x-forwarded-for': '10.0.0.1', x_request_id: 'x', 'x-request-id': 'y' }
  expect(sent(spoken)).toEqual({})
})

test('a header named like a part of every object is a header, and without it there is none', () => {
  const headers = JSON.parse('{"constructor":"b"}')
  expect(sent(headers)).toEqual({ constructor: 'b' })
  expect(forwardableHeader({}, 'constructor', { named: nothing, stripped: nothing })).toBeUndefined()
})

test.each(['accept_language', 'if_none_match', 'user_agent', 'x_own', 'x.own', 'x~own', "x'own", 'x!own'])(
  '%s does not go on: an upstream could read it as another header',
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
  expect(isProxyHeader(name)).toBe(expected)
})
