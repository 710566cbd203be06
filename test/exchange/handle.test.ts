import { Readable, Transform } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/errors.ts'
import { authorize } from '../../src/exchange/admit/authorize.ts'
import { match } from '../../src/exchange/admit/match.ts'
import { type ContractRefusal, validate } from '../../src/exchange/admit/validate.ts'
import type { ExchangeEvent } from '../../src/exchange/events.ts'
import { conditional } from '../../src/exchange/finish/conditional.ts'
import { failure, finish } from '../../src/exchange/finish/finish.ts'
import { forward } from '../../src/exchange/forward.ts'
import { type HandleDeps, handle } from '../../src/exchange/handle.ts'
import type { MatchedContext, RequestContext, ValidatedContext } from '../../src/exchange/request-context.ts'
import type { Service } from '../../src/exchange/service.ts'
import { unlimited } from '../../src/http/bounds/byte-budget.ts'
import { hasBearer } from '../../src/http/headers/credential-headers.ts'
import { headerValue } from '../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../src/http/message.ts'
import { canonicalOf } from '../../src/service/canonical.ts'
import type { Found } from '../../src/service/row.ts'
import type { ForwardRequest } from '../../src/upstream/messages.ts'
import {
  matched,
  outgoing,
  ready,
  received,
  response,
  siteAddress,
  siteContract,
  siteService,
} from './exchange-of.ts'

const clock = { now: () => 0, monotonic: () => 0 }

const thrownBy = (run: () => unknown): GatewayError => {
  try {
    run()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** What `handle` needs; what a test does not reach is missing, and would throw. */
const contextOf = (events: ExchangeEvent[] = [], failures: unknown[] = []): HandleDeps =>
  ({
    clock,
    finished: (event) => events.push(event),
    report: (event) => events.push(event),
    failed: (error) => failures.push(error.code),
    forwarding: { via: 'test' },
    budget: () => unlimited,
    limits: undefined,
    compress: undefined,
    watches: [],
    spans: undefined,
    overload: undefined,
    batchOf: () => undefined,
  }) as Partial<HandleDeps> as HandleDeps

const upstreamThat = (request: Service['upstream']['request']): Service['upstream'] =>
  ({ request }) as Service['upstream']

describe('finish', () => {
  test('a response is stamped and counted', () => {
    const events: ExchangeEvent[] = []
    const outcome = finish(contextOf(events), received('/site/v2/posts'), 0, response(200))
    expect(headerValue(outcome.headers, 'x-request-id')).toBe('id-1')
    expect(headerValue(outcome.headers, 'via')).toBe('1.1 trellis')
    expect(events).toMatchObject([{ kind: 'exchange-finished', status: 200, method: 'GET' }])
  })

  test('a method from a client never becomes a label', () => {
    const events: ExchangeEvent[] = []
    finish(contextOf(events), received('/', { method: 'X-EVIL' }), 0, response(404))
    expect(events).toMatchObject([{ method: '_OTHER' }])
  })
})

describe('an error', () => {
  test('becomes the response of the service, reported once', async () => {
    const events: ExchangeEvent[] = []
    const outcome = await handle(contextOf(events), received('/x'))
    expect(outcome.status).toBe(404)
    expect(JSON.parse(String(outcome.content))).toMatchObject({
      code: 'rest_no_route',
      data: { status: 404 },
    })
    expect(events).toMatchObject([
      {
        kind: 'request-refused',
        id: 'id-1',
        service: 'site',
        route: 'unmatched',
        code: 'no_route',
        status: 404,
        origin: 'client',
      },
      { kind: 'exchange-finished', status: 404 },
    ])
  })

  test('that nobody expected is an internal error that does not reveal its cause', () => {
    const failures: unknown[] = []
    const outcome = failure(contextOf([], failures), received('/x'), new Error('secret detail'))
    expect(outcome.status).toBe(500)
    expect(String(outcome.content)).not.toContain('secret')
    expect(failures).toEqual(['internal'])
  })
})

describe('match', () => {
  test('finds the row and its parameters', () => {
    const exchange = received('/site/v2/posts/0005')
    expect(match(exchange).matching).toMatchObject({
      kind: 'found',
      path: '/site/v2/posts/5',
      pathParameters: { id: '5' },
    })
    expect(exchange.record.route).toBe('/site/v2/posts/{id}')
  })

  test('understands an override on POST', () => {
    const exchange = received('/site/v2/posts/5', {
      method: 'POST',
      headers: { 'x-http-method-override': 'DELETE' },
    })
    expect(match(exchange).method).toBe('DELETE')
  })

  test.each<[string, RequestContext, string]>([
    ['a path that no row lists', received('/nope'), 'no_route'],
    ['a method that no endpoint has', received('/site/v2/posts', { method: 'DELETE' }), 'no_route'],
    [
      'an override on GET',
      received('/site/v2/posts', { headers: { 'x-http-method-override': 'DELETE' } }),
      'ambiguous_request',
    ],
    ['a path with dot segments', received('/site/../x'), 'ambiguous_request'],
    ['bytes beyond ASCII', received('/site/v2/p\u00e4'), 'malformed_request'],
  ])('refuses %s', (_, exchange, code) => {
    expect(thrownBy(() => match(exchange)).code).toBe(code)
  })

  test('goes on with what no row lists where the service passes it', () => {
    expect(
      match(received('/nope', {}, siteService({ contract: siteContract({ unlisted: 'pass' }) }))).matching
        .kind,
    ).toBe('unlisted')
  })
})

describe('authorize', () => {
  const plants = siteService({
    contract: siteContract({
      challenge: (_endpoint, headers) => (hasBearer(headers) ? undefined : 'Bearer'),
    }),
    name: 'plants',
  })

  test.each([
    ['Bearer abc', true],
    ['bearer  abc.def~+/-_==', true],
    ['Bearer', false],
    ['Bearer a b', false],
    ['Basic abc', false],
    [undefined, false],
  ])('%s: %s', (authorization, passes) => {
    const exchange = matched('/site/v2/posts', { headers: { authorization } }, plants)
    const run = () => authorize(exchange, () => {})
    if (passes) expect(run).not.toThrow()
    else expect(thrownBy(run).headers).toEqual(['WWW-Authenticate', 'Bearer realm="plants"'])
  })
})

describe('validate', () => {
  const validated = async (exchange: MatchedContext): Promise<ValidatedContext | ContractRefusal> =>
    validate(exchange, unlimited, () => {})
  const run = async (exchange: MatchedContext): Promise<ValidatedContext> => {
    const ready = await validated(exchange)
    if ('response' in ready) throw new Error('refused')
    return ready
  }

  test('gives the canonical target and the typed arguments', async () => {
    const next = await run(matched('/site/v2/posts?page=1&per_page=5&x=y'))
    expect(next.target).toBe('/site/v2/posts?per_page=5')
    expect(next.arguments).toMatchObject({ page: 1, per_page: 5 })
  })

  test('remembers the canonical form of a GET for the next one with this target', async () => {
    const service = siteService()
    await run(matched('/site/v2/posts?per_page=5', {}, service))
    expect(service.memo.recall('/site/v2/posts?per_page=5')).toMatchObject({
      kind: 'valid',
      target: '/site/v2/posts?per_page=5',
    })
  })

  test('remembers the refusal of a GET unless it depends on the client', async () => {
    const service = siteService()
    const refused = (target: string, headers: Record<string, string> = {}) =>
      validated(matched(target, { headers }, service))
    await refused('/site/v2/posts?per_page=1', { cookie: 'wordpress_logged_in_1=a' })
    await refused('/site/v2/posts?per_page=0', { cookie: 'wordpress_logged_in_1=a' })
    expect(service.memo.recall('/site/v2/posts?per_page=0')).toBeUndefined()
    await refused('/site/v2/posts?per_page=0')
    expect(service.memo.recall('/site/v2/posts?per_page=0')).toMatchObject({
      kind: 'refused',
      code: 'rest_invalid_param',
    })
  })

  test('remembers no refusal of a service with several hosts, because its links depend on the host', async () => {
    const service = siteService({ address: { ...siteAddress, host: 'a.example' } })
    await validated(matched('/site/v2/posts?per_page=0', {}, service))
    expect(service.memo.recall('/site/v2/posts?per_page=0')).toBeUndefined()
  })

  test.each([
    [1_000, 'refused'],
    [1_100, undefined],
  ])('of a refusal with %d octets of text it remembers: %s', async (length, kind) => {
    const body = 'x'.repeat(length)
    const validator = { validate: () => ({ kind: 'invalid', status: 400, code: 'wrong', body }) as const }
    const service = siteService({ contract: siteContract({ validator }) })
    await validated(matched('/site/v2/posts', {}, service))
    expect(service.memo.recall('/site/v2/posts')?.kind).toBe(kind)
  })

  test('reads JSON and hands it on byte for byte', async () => {
    const content = Readable.from([Buffer.from('{ "title"'), Buffer.from(':"x"}')])
    const headers = { 'content-type': 'application/json' }
    const next = await run(matched('/site/v2/posts', { method: 'POST', headers, content }))
    expect(String(next.content)).toBe('{ "title":"x"}')
  })

  test('reads content whose coding is said to be none', async () => {
    const content = Readable.from([Buffer.from('{}')])
    const headers = { 'content-type': 'application/json', 'content-encoding': 'Identity' }
    const next = await run(matched('/site/v2/posts', { method: 'POST', headers, content }))
    expect(String(next.content)).toBe('{}')
  })

  test('leaves an upload unread', async () => {
    const content = Readable.from([Buffer.from('x')])
    const next = await run(
      matched('/site/v2/media', { method: 'POST', headers: { 'content-type': 'image/png' }, content }),
    )
    expect(next.content).toBe(content)
  })

  test.each([
    [
      'more content than a body may have',
      { 'content-type': 'application/json', 'content-length': '2000' },
      'content_too_large',
    ],
    ['a type that the row does not take', { 'content-type': 'text/plain' }, 'unsupported_content_type'],
    [
      'a form that is coded: what it says could not be checked',
      { 'content-type': 'application/x-www-form-urlencoded', 'content-encoding': 'gzip' },
      'unsupported_content_type',
    ],
    [
      'coded JSON',
      { 'content-type': 'application/json', 'content-encoding': 'identity, br' },
      'unsupported_content_type',
    ],
  ])('refuses %s', async (_, headers, code) => {
    const content = Readable.from([Buffer.alloc(10)])
    await expect(
      validated(matched('/site/v2/posts', { method: 'POST', headers, content })),
    ).rejects.toMatchObject({
      code,
    })
  })
})

describe('an item of a batch', () => {
  const counted = () => {
    const calls = { find: 0, validate: 0 }
    const { find, validator } = siteContract()
    const contract = siteContract({
      find: (method, path) => {
        calls.find += 1
        return find(method, path)
      },
      validator: {
        validate: (input) => {
          calls.validate += 1
          return validator.validate(input)
        },
      },
    })
    return { calls, service: siteService({ contract }) }
  }
  const admittedFor = (service = siteService()) => {
    const matching = service.contract.find('GET', '/site/v2/posts') as Found
    const canonical = canonicalOf(service.contract, 'GET', matching, {
      query: 'per_page=5',
      headers: undefined,
      contentType: undefined,
      content: undefined,
    })
    if (canonical.kind === 'invalid') throw new TypeError('expected a valid request')
    return { service, matching, canonical }
  }
  const run = (exchange: RequestContext) => validate(match(exchange), unlimited, () => {})

  test('is neither routed nor validated again', () => {
    const { calls, service } = counted()
    const admitted = admittedFor(service)
    const before = { ...calls }
    expect(run({ ...received('/site/v2/posts?per_page=5', {}, service), checked: admitted })).toMatchObject({
      target: '/site/v2/posts?per_page=5',
    })
    expect(calls).toEqual(before)
  })

  test('is routed and validated anew where a reload has replaced its service', () => {
    const { calls, service } = counted()
    void run({ ...received('/site/v2/posts?per_page=5', {}, service), checked: admittedFor() })
    expect(calls).toEqual({ find: 1, validate: 1 })
  })
})

describe('preconditions', () => {
  const tagged = () => response(200, '{}', ['ETag', '"a"', 'Content-Type', 'application/json'])

  test.each([
    ['"a"', 304],
    ['W/"a"', 304],
    ['*', 304],
    ['"b"', 200],
  ])('If-None-Match: %s gives %i', (value, status) => {
    const exchange = ready('/', { headers: { 'if-none-match': value } })
    const outcome = conditional(exchange, tagged(), clock)
    expect(outcome.status).toBe(status)
    if (status === 304) expect(outcome.content).toBeUndefined()
  })

  test('leaves a response alone that streams, and one to a write', () => {
    const headers = { 'if-none-match': '"a"' }
    const streaming = { ...tagged(), content: Readable.from(['{}']) }
    expect(conditional(ready('/', { headers }), streaming, clock).status).toBe(200)
    expect(conditional(ready('/site/v2/posts', { method: 'POST', headers }), tagged(), clock).status).toBe(
      200,
    )
  })
})

describe('what the gateway answers itself', () => {
  const documents = {
    index: () => response(200, '"index"'),
    options: () => response(200, '"options"'),
    written: () => {},
  }
  const batch = async () => response(207, '"batch"')
  const upstream = upstreamThat(async () => response(200, '"upstream"'))

  test.each([
    ['/', 'GET', '"index"'],
    ['/site/v2', 'GET', '"index"'],
    ['/batch/v1', 'POST', '"batch"'],
    ['/site/v2/posts', 'OPTIONS', '"options"'],
    ['/site/v2/posts', 'GET', '"upstream"'],
  ])('%s %s is answered by %s', async (target, method, by) => {
    const content = method === 'POST' ? Buffer.from('{"requests":[{"path":"/site/v2/posts"}]}') : undefined
    const headers = content === undefined ? {} : { 'content-type': 'application/json' }
    const exchange = received(target, { method, content, headers }, siteService({ documents, upstream }))
    expect(String((await handle({ ...contextOf(), batchOf: () => batch }, exchange)).content)).toBe(by)
  })
})

describe('names of the upstream', () => {
  const translation = {
    toUpstreamTarget: (path: string, query: string) => `/up${path}?${query}`,
    toUpstreamContent: (content: Buffer) => Buffer.from(String(content).toUpperCase()),
    fromUpstream: (lines: readonly string[]) => ({
      headers: [...lines, 'X-Mapped', '1'],
      mapper: {
        whole: (content: Buffer) => Buffer.from(`${String(content).toLowerCase()}.`),
        transform: () =>
          new Transform({
            transform: (chunk: Buffer, _encoding, done) => done(null, String(chunk).toLowerCase()),
            flush: (done) => done(null, '.'),
          }),
      },
    }),
  }

  test('names go up and come down, for content at hand and for content that streams', async () => {
    let seen: ForwardRequest | undefined
    const reply = async (content: Buffer | Readable): Promise<GatewayResponse> => {
      const upstream = upstreamThat(async (request) => {
        seen = request
        return { ...response(200), content }
      })
      const service = siteService({ address: { ...siteAddress, translation }, upstream })
      return forward(
        contextOf(),
        outgoing('/site/v2/posts', { method: 'POST', content: Buffer.from('a') }, service),
      )
    }
    const whole = await reply(Buffer.from('ABC'))
    expect([seen?.target, String(seen?.content)]).toEqual(['/wp-json/up/site/v2/posts?', 'A'])
    expect([String(whole.content), headerValue(whole.headers, 'x-mapped')]).toEqual(['abc.', '1'])
    const streamed = await reply(Readable.from([Buffer.from('A'), Buffer.from('B')]))
    const chunks: Buffer[] = []
    for await (const chunk of streamed.content as Readable) chunks.push(chunk as Buffer)
    expect(String(Buffer.concat(chunks))).toBe('ab.')
  })
})
