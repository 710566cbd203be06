import { beforeAll, expect, test } from 'vitest'
import { rowsOf } from '../../support/breadth.ts'
import { closeAfterAll } from '../../support/close.ts'
import { costOfRequest } from '../../support/cost.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

// What one request costs whose query is as long as a target may be.

const characters = 7_500
/** For fifty requests. */
const maxMs = 400
let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '[]' }),
  )
  gateway = await startTestGateway({
    services: {
      site: siteService(origin.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] } }),
      plants: { contract: 'plants', mount: '/plants-api', upstream: { targets: [origin.origin] } },
      open: { contract: 'open', mount: '/open', upstream: { targets: [origin.origin] } },
    },
  })
})
closeAfterAll(() => [gateway, origin])

const filled = (piece: string): string => piece.repeat(Math.floor(characters / piece.length))
const numbered = (piece: (at: number) => string): string => {
  let text = ''
  for (let at = 0; text.length < characters - 40; at += 1) text += piece(at)
  return text
}

const queries: readonly (readonly [string, string])[] = [
  ['many parameters', numbered((at) => `p${at}=${at}&`)],
  ['many elements of a list', filled('include[]=7&')],
  ['many numbered elements of a list', numbered((at) => `include[${at}]=${at}&`)],
  ['lists in each other', `a${filled('[b]')}=1`],
  ['many lists in each other', filled('meta[a][b][c][d]=1&')],
  ['brackets that do not close', `a${filled('[')}=1`],
  ['brackets that only close', `a${filled(']')}=1`],
  ['a long run of escapes', `search=${filled('%C3%A4')}`],
  ['escapes of escapes', `search=${filled('%25')}`],
  ['escapes that are none', `search=${filled('%zz')}`],
  ['many plus signs', `search=${filled('+')}`],
  ['one name again and again', filled('search=a&')],
  ['many commas in a list', `include=${filled('1,')}1`],
  ['commas with nothing between them', `include=${filled(',')}`],
  ['a huge integer', `page=${filled('9')}`],
  ['a huge negative fraction', `page=-0.${filled('0')}1`],
  ['a long enum', `order=${filled('asc')}`],
  ['a long list of enums', `status=${filled('publish,')}draft`],
  ['a long date', `after=2026-01-01T00:00:00.${filled('0')}Z`],
  ['a date of digits', `after=${filled('2026-')}`],
  ['a long slug', `slug=${filled('a-')}!`],
  ['a long list of slugs', `slug=${filled('a,')}!`],
  ['many ampersands', filled('&')],
  ['many equals signs', filled('=')],
  ['a long list of fields', `_fields=${filled('a.b.c,')}id`],
]

const all = queries.flatMap(([name, query]) =>
  ['/index.php/site-json/site/v2/posts', '/plants-api/plants', '/open/x'].map(
    (path) => [name, path, query] as const,
  ),
)

test.each(rowsOf(all, 4))(
  'a query with %s to %s costs a bounded amount of processor time',
  async (_, path, query) => {
    const statuses = new Set<number>()
    const ask = async (): Promise<void> => {
      for (let turn = 0; turn < 50; turn += 1) {
        const response = await fetch(`${gateway.publicAddress}${path}?${query}`, {
          headers: path.startsWith('/plants') ? { Authorization: 'Bearer x' } : {},
        })
        await response.arrayBuffer()
        statuses.add(response.status)
      }
    }
    const ms = await costOfRequest(ask, maxMs)
    expect(ms).toBeLessThan(maxMs)
    // One meaning, whenever it is asked: a response, or a refusal as what it is.
    expect([...statuses].map((status) => [200, 400, 404, 414].includes(status))).toEqual([true])
  },
)
