import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService } from '../../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { longestTurn, reportsLongTurns } from '../../support/long-turns.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'

// One large content, however it is made up, holds the event loop for a short time: in processor time, with that of the collector.

const megabyte = 1 << 20
/** What a site takes. */
const most = 8 * megabyte
/** About three times what a quiet machine takes: other tests share the caches of the processor. */
const mostTurnMs = { [megabyte]: 150, [most]: 300 }

let origin: Origin
let gateway: GatewayProcess

beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({ fields: { 'Content-Type': 'application/json' }, content: '{}' }),
  )
  gateway = await startGatewayProcess(
    { services: { site: siteService(origin.origin, { unlistedRoutes: 'pass' }) } },
    {},
    reportsLongTurns,
  )
})
afterAll(async () => {
  await gateway.stop()
  await origin.close()
})

const filled = (bytes: number, before: string, piece: string, after = ''): Buffer =>
  Buffer.from(
    before + piece.repeat(Math.floor((bytes - before.length - after.length) / piece.length)) + after,
    'latin1',
  )
const numbered = (bytes: number, before: string, piece: (at: number) => string, after: string): Buffer => {
  let text = before
  for (let at = 0; text.length < bytes - 100; at += 1) text += piece(at)
  return Buffer.from(text + after)
}

type Made = (bytes: number) => Buffer
const form = 'application/x-www-form-urlencoded'
const json = 'application/json'
const posts = '/site/v2/posts'

const bodies: readonly (readonly [title: string, type: string, made: Made, path?: string])[] = [
  ['a form with a list of fields', form, (bytes) => filled(bytes, '_fields=', 'a,')],
  ['a form with a list of fields in escapes', form, (bytes) => filled(bytes, '_fields=', '%61,')],
  [
    'a form with many lists of fields',
    form,
    (bytes) => filled(bytes, '', `_fields[]=${'a,'.repeat(5_000)}&`),
  ],
  ['a form with a list of fields that are mapped', form, (bytes) => filled(bytes, '_embed=', 'wp_id,')],
  [
    'JSON with URLs of the site',
    json,
    (bytes) => filled(bytes, '{"content":[', `"${gateway.origin}/index.php/site-json/site/a",`, '1]}'),
  ],
  [
    'JSON with names that are mapped',
    json,
    (bytes) => filled(bytes, '{"a":[', '{"wp_id":1234567890123},', '1]}'),
  ],
  ['a form with a list of tags', form, (bytes) => filled(bytes, 'tags=', '1,')],
  ['a form with a list of nothing', form, (bytes) => filled(bytes, 'tags=', ',')],
  ['JSON with a list of tags in a text', json, (bytes) => filled(bytes, '{"tags":"', '1,', '"}')],
  ['a form of octets that are no UTF-8', form, (bytes) => filled(bytes, 'content=', '\xff')],
  ['a form of escapes that are no UTF-8', form, (bytes) => filled(bytes, 'content=', '%ff')],
  [
    'a form of many texts that are no UTF-8',
    form,
    (bytes) => filled(bytes, '', `a[]=${'%ff'.repeat(5_000)}&`),
  ],
  ['a form of escapes', form, (bytes) => filled(bytes, 'content=', '%C3%A4')],
  ['a form of umlauts', form, (bytes) => filled(bytes, 'content=', '\xc3\xa4')],
  ['a form of plus signs', form, (bytes) => filled(bytes, 'content=', '+')],
  ['JSON of many names', json, (bytes) => numbered(bytes, '{', (at) => `"${at}x":1,`, '"y":1}')],
  [
    'JSON of many long names',
    json,
    (bytes) => numbered(bytes, '{', (at) => `"name ${at} of many":1,`, '"y":1}'),
  ],
  ['JSON of a long text', json, (bytes) => filled(bytes, '{"content":"', 'a', '"}')],
  [
    'a batch of many items',
    json,
    (bytes) => filled(bytes, '{"requests":[', '{"path":"/site/v2/posts"},', '{}]}'),
    '/batch/v1',
  ],
  [
    'a batch of items with many members',
    json,
    (bytes) =>
      numbered(bytes, '{"requests":[{"path":"/site/v2/posts","body":{', (at) => `"${at}x":1,`, '"y":1}}]}'),
    '/batch/v1',
  ],
]

test.each(
  bodies.flatMap(([title, type, made, path = posts]) =>
    [megabyte, most].map((bytes) => [bytes / megabyte, title, type, made, path] as const),
  ),
)(
  '%i MiB of %s hold the event loop for a short time',
  async (mebibytes, _, type, made, path) => {
    const bytes = mebibytes * megabyte
    const content = made(bytes)
    expect(content.length).toBeGreaterThan(0.9 * bytes)
    expect(content.length).toBeLessThanOrEqual(bytes)
    const enough = mostTurnMs[bytes] as number
    let best = Number.POSITIVE_INFINITY
    let status = 0
    for (let tries = 0; tries < 3 && best >= enough; tries += 1) {
      const turn = await longestTurn(gateway.program, async () => {
        const response = await fetch(`${gateway.origin}/index.php/site-json${path}`, {
          method: 'POST',
          headers: { 'Content-Type': type },
          body: new Uint8Array(content),
        })
        await response.arrayBuffer()
        status = response.status
        await pause(100)
      })
      best = Math.min(best, turn)
    }
    expect(best).toBeLessThan(enough)
    expect([200, 400, 413]).toContain(status)
  },
  60_000,
)
