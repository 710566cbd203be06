import { beforeAll, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'

let origin: Origin
let gateway: TestGateway
const root = (): string => `${gateway.publicAddress}/index.php/site-json`
const authorized = { Authorization: 'Basic eDp5' }

beforeAll(async () => {
  origin = await startOrigin((_, wire) =>
    wire.respond({
      status: 201,
      headers: { 'Content-Type': 'application/json', Location: 'http://a.example/made/1' },
      content: '{"id":1}',
    }),
  )
  gateway = await startTestGateway({ services: { site: siteService(origin.origin) } })
})
closeAfterAll(() => [gateway, origin])

const write = (path: string, content: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(root() + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: content,
  })

describe('refusals of the gateway have the headers of WordPress', () => {
  test.each<[string, () => Promise<Response>, string | null]>([
    ['a public list', () => fetch(`${root()}/site/v2/posts?per_page=0`), 'GET'],
    ['a batch', () => write('/batch/v1', '{"requests":"x"}'), 'POST'],
    ['what only the upstream knows of: one item', () => fetch(`${root()}/site/v2/posts/4?context=x`), null],
    [
      'what only the upstream knows of: an editor',
      () => fetch(`${root()}/site/v2/posts?context=edit&per_page=0`),
      null,
    ],
    [
      'what only the upstream knows of: a caller',
      () => fetch(`${root()}/site/v2/posts?per_page=0`, { headers: authorized }),
      null,
    ],
    ['a path', () => fetch(`${root()}/site/v2/posts/4%00`), null],
  ])('%s', async (_, send, allow) => {
    const { status, headers } = await send()
    expect(status).toBe(400)
    expect(headers.get('link')).toBe(`<${root()}/>; rel="https://api.w.org/"`)
    expect(headers.get('x-robots-tag')).toBe('noindex')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-type')).toBe('application/json; charset=UTF-8')
    expect(headers.get('allow')).toBe(allow)
  })

  test('a refusal to a client with a credential is not cacheable', async () => {
    for (const send of [
      () => write('/batch/v1', '{"requests":"x"}', authorized),
      () => write('/batch/v1', '{"requests":[]}', authorized),
      () => write('/site/v2/posts', '{"status":"x"}', authorized),
    ]) {
      const { headers } = await send()
      expect(headers.get('cache-control')).toBe('no-cache, must-revalidate, max-age=0, no-store, private')
      expect(headers.get('expires')).toBe('Wed, 11 Jan 1984 05:00:00 GMT')
    }
    for (const send of [
      () => write('/batch/v1', '{"requests":"x"}'),
      () => write('/batch/v1', '{"requests":[]}'),
    ]) {
      const { headers } = await send()
      expect([headers.get('cache-control'), headers.get('expires')]).toEqual([null, null])
    }
  })

  test('its JSON is spelled as PHP spells it', async () => {
    const response = await write('/site/v2/posts', JSON.stringify({ status: 'ü/ß' }))
    const text = await response.text()
    expect(text).toMatch(/^[ -~]+$/)
    expect(text.replaceAll('\\/', '')).not.toContain('/')
  })

  test.each(['_jsonp=a-b', '_jsonp[]=cb', '_jsonp=a-b&per_page=0'])(
    'a JSONP callback that is no name is refused first, as a script: %s',
    async (query) => {
      const response = await fetch(`${root()}/site/v2/posts?${query}`)
      expect(response.status).toBe(400)
      expect(response.headers.get('content-type')).toBe('application/javascript; charset=UTF-8')
      expect(response.headers.get('allow')).toBeNull()
      expect(await response.text()).toBe(
        '{"code":"rest_callback_invalid","message":"Invalid JSONP callback function."}',
      )
    },
  )
})

describe('an item of a batch', () => {
  const batch = async (paths: readonly string[]): Promise<string> => {
    const requests = paths.map((path) => ({ path, body: { title: 'x' } }))
    return (await write('/batch/v1', JSON.stringify({ requests }))).text()
  }

  test('gets the location of the new item in the spelling of WordPress', async () => {
    expect(await batch(['/site/v2/posts'])).toContain(
      '"headers":{"Location":"http:\\/\\/a.example\\/made\\/1"}',
    )
  })

  test.each([
    ['/site/v2/templates/theme//single', 400, 'rest_batch_not_allowed'],
    ['/site/v2/template-parts/theme//footer', 400, 'rest_batch_not_allowed'],
    ['/site/v2/templates/theme//single/autosaves', 400, 'rest_batch_not_allowed'],
    ['/site/v2//posts', 404, 'rest_no_route'],
    ['/site/v2/posts//4', 404, 'rest_no_route'],
    ['/site//v2/templates/theme//single', 404, 'rest_no_route'],
  ])('with two slashes in its path is refused as WordPress refuses it: %s', async (path, status, code) => {
    const { responses } = JSON.parse(await batch([path])) as {
      responses: { status: number; body: { code: string } }[]
    }
    expect(responses.map((one) => [one.status, one.body.code])).toEqual([[status, code]])
  })
})
