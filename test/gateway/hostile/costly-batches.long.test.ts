import { beforeAll, beforeEach, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { costOfRequest } from '../../support/cost.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'

// What one batch of a megabyte costs, however it is made up: about as much as reading it a few times.

const json = { 'Content-Type': 'application/json' }
let origin: Origin
let gateway: TestGateway
let listed = '[]'

beforeAll(async () => {
  origin = await startOrigin(({ method }, wire) =>
    wire.respond({ headers: json, content: method === 'GET' ? listed : '{}' }),
  )
  gateway = await startTestGateway({
    services: { site: siteService(origin.origin, { batch: { split: 'item' } }) },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  listed = '[]'
})

type Reply = { readonly status: number; readonly text: string }

const post = async (content: string): Promise<Reply> => {
  const response = await fetch(`${gateway.publicAddress}/index.php/site-json/batch/v1`, {
    method: 'POST',
    headers: json,
    body: content,
  })
  return { status: response.status, text: await response.text() }
}

const withItems = (...items: readonly string[]): string =>
  `{"requests":[{"method":"GET","path":"/site/v2/posts"},${items.join(',')}]}`
const put = (body: string): string => `{"method":"PUT","path":"/site/v2/posts/5","body":${body}}`
const repeated = (text: string, characters: number): string =>
  text.repeat(Math.floor(characters / text.length))
const reference = '{"$ref":"a#/body/0/id"}'
const megabyte = 1_000_000

const maxMs = 400

/** Names that differ, so that each is kept. */
const members = (count: number, name: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => `"${name(at)}":1`).join(',')

test.each([
  [
    'fifty lists in each other, objects in the innermost, and a reference behind them',
    () =>
      withItems(put(`{"meta":${'['.repeat(50)}${repeated('{},', 900_000)}${reference}${']'.repeat(50)}}`)),
  ],
  [
    'four hundred lists in each other and a reference',
    () =>
      withItems(put(`{"meta":${'['.repeat(400)}${repeated('{},', 900_000)}${reference}${']'.repeat(400)}}`)),
  ],
  ['as many references as fit', () => withItems(put(`{"meta":[${repeated(`${reference},`, 900_000)}1]}`))],
  [
    'objects that begin like a reference',
    () => withItems(put(`{"meta":[${repeated('{"$ref":"a","$ref":"b","c":{}},', 900_000)}${reference}]}`)),
  ],
  [
    'objects in each other that begin like a reference',
    () => withItems(put(`{"meta":${'{"$ref":'.repeat(400)}[${repeated('1,', 800_000)}1]${'}'.repeat(400)}}`)),
  ],
  [
    'a reference with a pointer of a megabyte',
    () => withItems(put(`{"a":{"$ref":"a#${repeated('/x', 900_000)}"}}`)),
  ],
  ['many different names', () => withItems(put(`{${members(50_000, (at) => `name${at}`)}}`))],
  ['names with escapes', () => withItems(put(`{${members(30_000, (at) => `\\u0061\\u0062${at}`)}}`))],
  ['one name again and again', () => withItems(put(`{${repeated('"title":"x",', 900_000)}"title":"y"}`))],
  [
    'an envelope with its requests again and again',
    () => `{${repeated('"requests":[{"path":"/x"}],', 900_000)}"requests":[]}`,
  ],
  ['a text of escaped quotes', () => withItems(put(`{"title":"${repeated('\\"', 900_000)}"}`))],
  ['a text of backslashes', () => withItems(put(`{"title":"${repeated('\\\\', 900_000)}"}`))],
  ['a path of a megabyte', () => withItems(`{"path":"/${repeated('{a#/body}/', 900_000)}"}`)],
  [
    'items with a large path each',
    () => withItems(...Array(24).fill(`{"path":"/site/v2/posts?${repeated('%41[]=%2B&', 8_000)}"}`)),
  ],
  [
    'items with a path full of references each',
    () => withItems(...Array(24).fill(`{"path":"${repeated('/{a#/body}', 8_000)}"}`)),
  ],
  [
    'headers with a hundred long values each',
    () =>
      withItems(
        ...Array(24).fill(
          `{"path":"/site/v2/posts/5","headers":{${Array.from({ length: 100 }, (_, at) => `"x-${at}":"${'v'.repeat(300)}"`)}}}`,
        ),
      ),
  ],
  [
    'a header that is a list of a hundred thousand values',
    () => withItems(`{"path":"/site/v2/posts/5","headers":{"x":[${repeated('"a",', 900_000)}"a"]}}`),
  ],
  ['a list of numbers as a body', () => withItems(put(`[${repeated('1,', 900_000)}1]`))],
])('%s cost no more than reading it a few times', async (_, made) => {
  const content = made()
  expect(content.length).toBeLessThan(1 << 20)
  const ms = await costOfRequest(() => post(content), maxMs)
  expect(ms).toBeLessThan(maxMs)
})

test('references of all items into one large response cost one reading of it', async () => {
  listed = JSON.stringify(
    Array.from({ length: 100 }, (_, id) => ({ id, content: 'x"\\'.repeat(3_000), last: id })),
  )
  expect(listed.length).toBeGreaterThan(megabyte)
  const refs = Array.from({ length: 32 }, (_, at) => `{"$ref":"a#/body/${99 - at}/last"}`).join(',')
  const content = withItems(...Array(24).fill(put(`{"title":[${refs}]}`)))
  const ms = await costOfRequest(() => post(content), maxMs)
  expect(ms).toBeLessThan(maxMs)
})
