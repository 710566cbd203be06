import { expect, test } from 'vitest'
import type { CacheOutcome } from '../../../src/exchange/events.ts'
import { Redaction } from '../../../src/http/redaction.ts'
import { type AccessLine, createAccessLog } from '../../../src/observability/access-log.ts'
import { received, siteService } from '../../exchange/exchange-of.ts'

const service = siteService()

const log = (mode: 'all' | 'sample', sampleHits = 0.1) => {
  const lines: AccessLine[] = []
  const watch = createAccessLog({
    mode,
    sampleHits,
    path: false,
    client: 'none',
    userAgent: false,
    target: false,
    redaction: new Redaction(),
    write: (line) => lines.push(line),
  })
  const response = (cache: CacheOutcome, headers: readonly string[] = [], content?: Buffer): void => {
    const exchange = received('/site/v2/posts?password=planted', {}, service)
    exchange.record.cache = cache
    exchange.record.route = '/site/v2/posts'
    exchange.record.upstreamMs = 1.234_567
    watch.end(exchange, { head: { status: 200, headers }, content, durationMs: 2 })
  }
  return { lines, response }
}

test('a line has the outcome of a request and nothing that the client sent', () => {
  const { lines, response } = log('all')
  const status = 'trellis; fwd=uri-miss; fwd-status=200; ttl=60; stored'
  response('miss', ['Cache-Status', 'other; hit', 'Cache-Status', status], Buffer.from('four'))
  expect(lines).toEqual([
    {
      id: 'id-1',
      trace: undefined,
      service: 'site',
      route: '/site/v2/posts',
      method: 'GET',
      status: 200,
      cache: 'miss',
      cacheStatus: 'fwd=uri-miss; fwd-status=200; ttl=60; stored',
      durationMs: 2,
      upstreamMs: 1.235,
      bytes: 4,
      weight: undefined,
    },
  ])
})

test('the Cache-Status of an upstream is not repeated', () => {
  const { lines, response } = log('all')
  response('bypass', ['Cache-Status', 'planted'])
  response('none', ['Cache-Status', 'trellis; planted'])
  expect(lines.map(({ cacheStatus }) => cacheStatus)).toEqual([undefined, undefined])
})

test('a share of the hits has a line, and says for how many; all others have one each', () => {
  const { lines, response } = log('sample', 0.1)
  for (let count = 0; count < 100; count += 1) response('hit')
  for (let count = 0; count < 7; count += 1) response('miss')
  const of = (cache: string) => lines.filter((line) => line.cache === cache)
  expect(of('hit').map(({ weight }) => weight)).toEqual(Array(10).fill(10))
  expect(of('miss').map(({ weight }) => weight)).toEqual(Array(7).fill(1))
})

test('with a share of 0 no hit has a line', () => {
  const { lines, response } = log('sample', 0)
  for (let count = 0; count < 1_000; count += 1) response('hit')
  response('stale')
  expect(lines.map(({ cache }) => cache)).toEqual(['stale'])
})
