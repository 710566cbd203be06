import { readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import type { Readable } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createGzip } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../support/close.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, pause, type Script, startOrigin } from '../support/origin.ts'

// Which transfers live, and which are cut after what: the table of docs/transfers.md, with short limits.

const limitsMs = { idle: 1_000, headers: 1_000, total: 1_500 }
/** Longer than each limit. */
const lastsMs = 2_500

const paces: Readonly<Record<string, { readonly everyMs: number; readonly count: number }>> = {
  'a piece now and then': { everyMs: 250, count: 10 },
  'small pieces, fast': { everyMs: 10, count: 250 },
  silent: { everyMs: lastsMs, count: 2 },
}
const piece = 'word '
/** Short bodies are read whole before they are sent. */
const uploaded = Buffer.alloc(10_000, 'u')

const rows = [
  ...readFileSync(new URL('../../docs/transfers.md', import.meta.url), 'utf8').matchAll(
    /^\|([a-z ]+)\|([a-z ,]+)\|([^|]+)\|$/gm,
  ),
]
  .map(([, transfer = '', pace = '', outcome = '']) => ({ transfer, pace, outcome }))
  .filter(({ transfer }) => transfer !== 'transfer')

let origin: Origin
let gateway: TestGateway

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const types: Readonly<Record<string, string>> = {
  download: 'text/plain',
  'event stream': 'text/event-stream',
}

const script: Script = async ({ method, target }, wire) => {
  const [, transfer = '', pace = ''] = decodeURIComponent(target.split('?')[0] ?? '').split('/')
  const { everyMs, count } = paces[pace] ?? { everyMs: 0, count: 0 }
  if (transfer === 'response head') await pause(lastsMs)
  const type = types[transfer]
  if (method === 'POST' || type === undefined) {
    wire.respond({ content: 'received' })
    return
  }
  wire.write(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`)
  for (let at = 0; at < count; at += 1) {
    wire.write(chunk(piece))
    await pause(everyMs)
  }
  wire.write('0\r\n\r\n')
}

beforeAll(async () => {
  origin = await startOrigin(script)
  const timeouts = Object.fromEntries(Object.entries(limitsMs).map(([name, ms]) => [name, `${ms}ms`]))
  const upstream = {
    targets: [origin.origin],
    timeouts: { connect: '1s', ...timeouts },
    maxConcurrent: 256,
    clientShare: 1,
    retry: { attempts: 1 },
    // Neither is the subject here.
    eject: { after: 1_000 },
    breaker: { failureRatio: 0 },
  }
  gateway = await startTestGateway({
    services: {
      passed: { contract: 'open', mount: '/passed', upstream },
      ruled: {
        contract: 'open',
        mount: '/ruled',
        upstream,
        cache: { rules: [{ match: 'GET /**', ttl: '60s' }] },
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])

type Got = {
  /** 0: the connection broke before a head. */
  readonly status: number
  readonly isWhole: boolean
  readonly text: string
  readonly cacheStatus: string
  /** From the request to the head, to the first octet that could be decoded, and to the end. */
  readonly headMs: number
  readonly firstMs: number
  readonly endMs: number
}

const decoded = (response: IncomingMessage): Readable => {
  const coding = response.headers['content-encoding']
  if (coding === 'gzip') return response.pipe(createGunzip())
  return coding === 'br' ? response.pipe(createBrotliDecompress()) : response
}

const transferOf = (
  path: string,
  coding: string,
  upload?: { readonly everyMs: number; readonly count: number },
): Promise<Got> =>
  new Promise((resolve) => {
    const began = performance.now()
    const since = (): number => performance.now() - began
    const got = { status: 0, isWhole: false, text: '', cacheStatus: '', headMs: 0, firstMs: 0, endMs: 0 }
    const end = (): void => resolve({ ...got, endMs: since() })
    const sent = request(gateway.publicAddress + path, {
      agent: false,
      method: upload === undefined ? 'GET' : 'POST',
      headers: {
        'Accept-Encoding': coding,
        ...(upload === undefined ? {} : { 'Content-Length': String(uploaded.length * upload.count) }),
      },
    })
    sent.on('error', end)
    sent.on('response', (response) => {
      got.status = response.statusCode ?? 0
      got.cacheStatus = String(response.headers['cache-status'])
      got.headMs = since()
      response.on('error', () => {})
      response.on('close', () => {
        if (!response.complete) end()
      })
      decoded(response)
        .on('error', () => {})
        .on('end', () => {
          got.isWhole = response.complete
          end()
        })
        .on('data', (octets: Buffer) => {
          if (got.text === '') got.firstMs = since()
          got.text += octets.toString()
        })
    })
    if (upload === undefined) {
      sent.end()
      return
    }
    const send = async (): Promise<void> => {
      for (let at = 0; at < upload.count && !sent.destroyed; at += 1) {
        sent.write(uploaded)
        await pause(upload.everyMs)
      }
      sent.end()
    }
    void send()
  })

/** Well before the end of what lasts for a second and a half, and as much later on a machine that is busy. */
const comesAtOnce = ({ headMs, firstMs, endMs }: Got): boolean => Math.max(headMs, firstMs) < 0.7 * endMs

const expectOutcome = (outcome: string, got: Got, count: number, isUpload: boolean): void => {
  const [, status, limit] = /^(?:(\d{3})|cut) after `upstream\.timeouts\.(\w+)`$/.exec(outcome) ?? []
  if (limit === undefined) {
    expect(outcome).toBe('passes as it comes')
    expect(got).toMatchObject({ status: 200, isWhole: true })
    expect(got.text).toBe(isUpload ? 'received' : piece.repeat(count))
    expect(got.endMs).toBeGreaterThan(limitsMs.total)
    if (!isUpload) expect(comesAtOnce(got), JSON.stringify({ ...got, text: '' })).toBe(true)
    return
  }
  expect(got.endMs).toBeGreaterThanOrEqual(limitsMs[limit as keyof typeof limitsMs] - 1)
  expect(got.endMs).toBeLessThan(lastsMs)
  if (status === undefined) expect(got).toMatchObject({ status: 200, isWhole: false })
  else expect(got.status).toBe(Number(status))
}

describe.each(['passed', 'ruled'])('%s', (mount) => {
  describe.each(['identity', 'gzip', 'br'])('%s', (coding) => {
    test.concurrent.each(rows)('$transfer, $pace: $outcome', async ({ transfer, pace, outcome }) => {
      const pieces = paces[pace]
      if (pieces === undefined) throw new Error(`${pace} is no pace of this test`)
      const path = `/${mount}/${encodeURIComponent(transfer)}/${encodeURIComponent(pace)}?${coding}`
      const isUpload = transfer === 'upload'
      const ask = () => transferOf(path, coding, isUpload ? pieces : undefined)
      let got = await ask()
      // On a machine that stood still another limit may have passed as well.
      for (let tries = 1; tries < 5 && outcome.includes('after') && got.endMs >= lastsMs; tries += 1)
        got = await ask()
      expectOutcome(outcome, got, pieces.count, isUpload)
      if (mount !== 'ruled' || isUpload || !got.isWhole || got.status !== 200) return
      if (transfer === 'event stream') expect(got.cacheStatus).toContain('detail=event-stream')
      else {
        expect(got.cacheStatus).toContain('detail=streamed')
        expect((await transferOf(path, coding)).cacheStatus).toContain('hit')
      }
    })
  })
})

test('the table has rows for each transfer', () => {
  expect(rows.map(({ transfer, pace }) => `${transfer}, ${pace}`)).toHaveLength(10)
})

test.each(['identity', 'gzip'])(
  'a stream that the upstream has compressed passes as it comes under a rule, accepted: %s, and is stored',
  async (coding) => {
    const path = `/ruled/coded?${coding}`
    origin.script = async ({ headers }, wire) => {
      const isCoded = String(headers['accept-encoding']).includes('gzip')
      wire.write(
        `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: "1"\r\n${isCoded ? 'Content-Encoding: gzip\r\n' : ''}Connection: close\r\n\r\n`,
      )
      const coder = createGzip()
      coder.on('data', (octets: Buffer) => wire.write(octets))
      for (let at = 0; at < 5; at += 1) {
        if (isCoded) {
          coder.write(piece)
          coder.flush(constants.Z_SYNC_FLUSH)
        } else wire.write(piece)
        await pause(300)
      }
      coder.once('end', () => wire.end()).end()
      if (!isCoded) wire.end()
    }
    const got = await transferOf(path, coding)
    expect(got).toMatchObject({ status: 200, isWhole: true, text: piece.repeat(5) })
    expect(comesAtOnce(got), JSON.stringify({ ...got, text: '' })).toBe(true)
    const hit = await transferOf(path, coding)
    expect(hit).toMatchObject({ status: 200, text: piece.repeat(5) })
    expect(hit.cacheStatus).toContain('hit')
    origin.script = script
  },
)
