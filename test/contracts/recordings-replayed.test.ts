import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type PlainResponse, send } from '../real/differential/send.ts'
import {
  asWordPress,
  contentOf,
  inNeutralNames,
  linkAsWordPress,
  type Site,
} from '../real/differential/spelling.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'
import { itemReplay } from './recorded-batch.ts'
import { type Recording, recordedHome, recordings } from './recording.ts'
import { cutShort, differingByDecision, respondedByGateway } from './recordings-expected.ts'

// A scripted origin gives each recorded answer byte for byte; the gateway's client must get what WordPress's client got.

const index = readFileSync(new URL('fixtures/discovery-wordpress-6.9.json', import.meta.url))
const json = { 'Content-Type': 'application/json; charset=UTF-8' }

const modes = [
  { title: 'names: same', mount: '/index.php/wp-json', names: 'same' },
  { title: 'names: wordpress', mount: '/index.php/site-json', names: 'wordpress' },
] as const

/** Fields that a client may act on; the rest is about one connection, or the gateway's own. */
const compared = [
  ...['content-type', 'x-wp-total', 'x-wp-totalpages', 'link', 'location', 'allow', 'retry-after', 'expires'],
  ...['x-robots-tag', 'x-content-type-options', 'x-wp-upload-attachment-id', 'access-control-allow-origin'],
  ...['access-control-expose-headers', 'access-control-allow-headers', 'access-control-allow-credentials'],
]

const fieldsOf = (response: PlainResponse, site: Site): Record<string, string | undefined> =>
  Object.fromEntries(
    compared.map((name) => [
      name,
      linkAsWordPress(located(name, response.headers[name]), site, recordedHome),
    ]),
  )

/** A Location is an address without the brackets of a link. */
const located = (name: string, value: string | undefined): string | undefined =>
  name === 'location' && value !== undefined ? `<${value}>` : value

const recordedResponse = ({ status, lines, content }: Recording): PlainResponse => ({
  status,
  headers: Object.fromEntries(lines.map(([name, value]) => [name.toLowerCase(), value])),
  text: content,
})

describe.each(modes)('$title', ({ mount, names }) => {
  let origin: Origin
  let gateway: TestGateway
  let site: Site
  let replay: Script

  beforeAll(async () => {
    origin = await startOrigin((request, wire, count) =>
      request.target === '/index.php/wp-json/'
        ? wire.respond({ headers: json, content: index })
        : replay(request, wire, count),
    )
    const service = {
      contract: 'site',
      mount,
      names,
      upstream: { targets: [origin.origin], basePath: '/index.php/wp-json', retry: { attempts: 1 } },
      batch: { split: 'item' },
      cache: { rules: [] },
    }
    gateway = await startTestGateway({ services: { site: service } })
    site = { restRoot: gateway.publicAddress + mount, names: names === 'same' ? 'wordpress' : 'neutral' }
    await vi.waitUntil(async () => (await fetch(`${site.restRoot}/`)).ok, { timeout: 60_000 })
  })
  afterAll(async () => {
    await gateway?.close()
    await origin?.close()
  })

  const ask = async ({ request, status, lines, content }: Recording): Promise<PlainResponse> => {
    replay =
      itemReplay(request, content) ??
      ((asked, wire) => {
        const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
        const body = asked.method === 'HEAD' ? '' : content
        const framing = asked.method === 'HEAD' ? '' : `Content-Length: ${Buffer.byteLength(content)}\r\n`
        wire.write(Buffer.from(`HTTP/1.1 ${status} Recorded\r\n${head}${framing}\r\n${body}`))
      })
    origin.received.length = 0
    const spelled = (text: string): string => (names === 'same' ? text : inNeutralNames(text))
    return send(gateway.publicAddress, {
      method: request.method,
      target: mount + spelled(request.target),
      headers: request.fields,
      content: request.content && spelled(request.content),
    })
  }

  const expectSame = (response: PlainResponse, recording: Recording): void => {
    const recorded = recordedResponse(recording)
    expect(asWordPress(contentOf(response), site, recordedHome)).toEqual(contentOf(recorded))
    expect(response.status).toBe(recorded.status)
  }

  const named = (list: readonly string[]) => recordings.filter(({ name }) => list.includes(name))
  const byDecision = Object.keys(differingByDecision)
  const listed = [...respondedByGateway, ...byDecision, ...cutShort]
  const others = recordings.filter(({ name }) => !listed.includes(name) && !name.startsWith('batch-'))

  test.each(named(respondedByGateway))(
    '$name: the gateway says itself what WordPress says',
    async (recording) => {
      expectSame(await ask(recording), recording)
      expect(origin.received).toEqual([])
    },
  )

  test.each(others)('$name: the response of WordPress arrives', async (recording) => {
    const response = await ask(recording)
    expectSame(response, recording)
    expect(fieldsOf(response, site)).toEqual(
      fieldsOf(recordedResponse(recording), { restRoot: recordedHome, names: 'wordpress' }),
    )
    expect(origin.received).toHaveLength(1)
  })

  test.each(recordings.filter(({ name }) => /^batch-(?!26)/.test(name)))(
    '$name: item by item as WordPress says it',
    async (recording) => {
      expectSame(await ask(recording), recording)
    },
  )

  test.each(named(byDecision))('$name differs by decision', async (recording) => {
    const { status, code, reachesUpstream } = differingByDecision[
      recording.name
    ] as (typeof differingByDecision)[string]
    const response = await ask(recording)
    expect({ status: response.status, code: JSON.parse(response.text).code }).toEqual({ status, code })
    expect(recording.content).not.toContain(code ?? '')
    expect(origin.received).toHaveLength(reachesUpstream)
  })
})

test('every name in the lists is a recording', () => {
  const known = recordings.map(({ name }) => name)
  expect(known).toEqual(
    expect.arrayContaining([...respondedByGateway, ...Object.keys(differingByDecision), ...cutShort]),
  )
  expect(recordings).toHaveLength(64)
})
