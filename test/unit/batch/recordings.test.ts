import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { ItemCheck, ItemResponse } from '../../../src/batch/item.ts'
import { asciiJson } from '../../../src/http/json-text.ts'
import { batchOf, wholeResponse } from './batch-of.ts'

type Recorded = {
  readonly body: unknown
  readonly status: number
  readonly headers: Record<string, string> | []
}

/** The request body out of the curl line (shell quoting undone), and the response's status and body. */
const recording = (name: string): { request: unknown; status: number; response: unknown } => {
  const text = readFileSync(new URL(`fixtures/batch-${name}.http`, import.meta.url), 'utf8')
  const [command = '', ...rest] = text.split('\n')
  const quoted = / -d (\S*(?:\\ \S*)*) -X POST/.exec(command)?.[1] ?? ''
  const body = quoted.startsWith('@') ? undefined : JSON.parse(quoted.replaceAll(/\\(.)/g, '$1'))
  const [head = '', content = ''] = rest.join('\n').replaceAll('\r', '').split('\n\n')
  return { request: body, status: Number(head.split(' ')[1]), response: JSON.parse(content) }
}

/** Headers that WordPress sends with every separate response and does not show inside a batch. */
const outerHeaders = ['Link', '<http://wordpress.test/>; rel="https://api.w.org/"', 'X-Robots-Tag', 'noindex']

const refusedInPlace = new Set([
  'rest_batch_not_allowed',
  'rest_missing_callback_param',
  'rest_invalid_param',
])

const isRefused = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'code' in body && refusedInPlace.has(String(body.code))

test.each(['anon', 'headers', 'mixed', 'order', 'disallowed'])(
  'answers the recorded batch "%s" alike',
  async (name) => {
    const { request, status, response } = recording(name)
    const responses = (response as { responses: Recorded[] }).responses
    const batch = batchOf({
      admit: (item): ItemCheck => {
        const recorded = responses[item.index]
        const facts = {
          collection: 'posts',
          kind: 'collection',
          itemId: undefined,
          method: item.method,
          effect: item.effect,
        }
        if (recorded === undefined || !isRefused(recorded.body)) return { kind: 'runnable', conflict: facts }
        return {
          kind: 'refused',
          status: recorded.status,
          body: recorded.body,
          headers: Object.entries(recorded.headers).flat(),
        }
      },
      handleItem: async (item): Promise<ItemResponse> => {
        const recorded = responses[item.index] as Recorded
        const headers = [...outerHeaders, ...Object.entries(recorded.headers).flat()]
        return { status: recorded.status, headers, content: Buffer.from(asciiJson(recorded.body)) }
      },
    })
    const responded = await wholeResponse(batch, request, new AbortController().signal)
    expect(responded.status).toBe(status)
    expect(responded.content.toString()).toBe(asciiJson(response))
  },
)

test('answers the recorded batch that must validate as a whole alike, and runs nothing', async () => {
  const { request, status, response } = recording('rav-invalid')
  const invalid = (response as { responses: (Recorded | null)[] }).responses[1] as Recorded
  let ran = 0
  const batch = batchOf({
    admit: (item): ItemCheck =>
      item.index === 1
        ? { kind: 'refused', status: 400, body: invalid.body, headers: ['Allow', 'GET, POST'] }
        : {
            kind: 'runnable',
            conflict: {
              collection: 'posts',
              kind: 'collection',
              itemId: undefined,
              method: 'POST',
              effect: 'write',
            },
          },
    handleItem: async () => {
      ran += 1
      return { status: 200, headers: [], content: Buffer.from('{}') }
    },
  })
  const responded = await wholeResponse(batch, request, new AbortController().signal)
  expect(responded.status).toBe(status)
  expect(responded.content.toString()).toBe(JSON.stringify(response))
  expect(ran).toBe(0)
})
