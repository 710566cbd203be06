import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { inShort, type Recorder, startRecorder } from '../../support/recorder.ts'
import { talk } from '../../support/talk.ts'
import { chunks } from './raw/chunks.ts'
import { framing } from './raw/framing.ts'
import { lines } from './raw/lines.ts'
import type { RawCase } from './raw/raw-case.ts'
import { sequences } from './raw/sequences.ts'
import { targets } from './raw/targets.ts'

// Bytes that two readers may take for different requests (RFC 9112 §11): what comes back, and what the upstream has seen.

let upstream: Recorder
let gateway: TestGateway

beforeAll(async () => {
  upstream = await startRecorder()
  const target = { upstream: { targets: [upstream.origin] } }
  gateway = await startTestGateway({
    limits: { bodyBytes: '1MiB' },
    services: {
      plants: { contract: 'plants', mount: '/', ...target },
      site: siteService(upstream.origin, { unlistedRoutes: 'refuse' }),
      open: { contract: 'open', mount: '/open', ...target },
      kept: {
        contract: 'open',
        mount: '/kept',
        upstream: { targets: [upstream.origin], basePath: '/kept' },
        cache: { profile: 'rfc-shared-cache' },
      },
    },
  })
  // So that it is a hit for every case.
  await fetch(`${gateway.publicAddress}/kept/a`)
})
closeAfterAll(() => [gateway, upstream])
beforeEach(() => {
  upstream.requests.length = 0
})

describe.each<[string, readonly RawCase[]]>([
  ['framing', framing],
  ['chunks', chunks],
  ['lines', lines],
  ['targets', targets],
  ['sequences', sequences],
])('%s', (_, cases) => {
  test.each(cases)('%s', async (_, bytes, summary, seen) => {
    const said = await talk(gateway.publicAddress, Buffer.from(bytes, 'latin1'), {
      enough: summary,
      silenceMs: 150,
    })
    // An unanswered request may still be in flight.
    await expect.poll(() => upstream.requests.length).toBeGreaterThanOrEqual(seen.length)
    // Requests on one connection are forwarded and answered in their order (RFC 9112 §9.3.2).
    expect({ said: said.summary, stray: said.stray, seen: upstream.requests.map(inShort) }).toEqual({
      said: summary,
      stray: '',
      seen,
    })
    expect(upstream.faults).toEqual([])
    // What was begun and cannot be ended has been given up.
    await expect.poll(() => upstream.unfinished()).toBe(0)
    // A new connection finds everything in order.
    expect(
      (
        await talk(gateway.publicAddress, Buffer.from('GET /open/next HTTP/1.1\r\nHost: a\r\n\r\n'), {
          enough: '200',
          silenceMs: 500,
        })
      ).answers[0]?.content.toString(),
    ).toBe('{"saw":"GET /next"}')
  })
})

test('there are at least 150 of them, and no two alike', () => {
  const all = [framing, chunks, lines, targets, sequences].flat()
  expect(all.length).toBeGreaterThanOrEqual(150)
  expect(new Set(all.map(([, bytes]) => bytes)).size).toBe(all.length)
})
