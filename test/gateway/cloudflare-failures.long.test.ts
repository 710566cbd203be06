import { afterAll, beforeAll, test } from 'vitest'
import { siteService } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { logLinesOf } from '../support/log-lines-of.ts'
import { type Origin, type Script, startOrigin } from '../support/origin.ts'

const success: Script = (_, wire) =>
  wire.respond({ headers: { 'Content-Type': 'application/json' }, content: '{"success":true,"errors":[]}' })

type Failure = { readonly name: string; readonly script: Script; readonly cause: string }

/** What the interface of Cloudflare may do in place of a purge, and what Trellis calls it. */
const failures: readonly Failure[] = [
  { name: 'error', script: (_, wire) => wire.respond({ status: 500 }), cause: 'status-500' },
  {
    name: 'limit',
    script: (_, wire) => wire.respond({ status: 429, headers: { 'Retry-After': '1' } }),
    cause: 'status-429',
  },
  { name: 'silence', script: () => {}, cause: 'TimeoutError' },
  {
    name: 'refusal',
    script: (_, wire) => wire.respond({ content: '{"success":false,"errors":[{"code":10000}]}' }),
    cause: 'not-confirmed',
  },
]
const policies = ['refuse', 'wait', 'lag'] as const
const zones = failures.flatMap((failure) =>
  policies.map((onFailure) => ({ ...failure, onFailure, zone: failure.name + onFailure })),
)

const sites = new Map<string, Origin>()
let cloudflare: Origin
let gateway: GatewayProcess
/** Zones whose purges fail. */
const failing = new Map<string, Script>()
const versions = new Map<string, number>()

const startSite = (zone: string): Promise<Origin> =>
  startOrigin(({ method }, wire) => {
    if (method === 'POST') versions.set(zone, (versions.get(zone) ?? 0) + 1)
    const content = JSON.stringify({ id: 7, type: 'post', status: 'publish', title: versions.get(zone) ?? 0 })
    wire.respond({ headers: { 'Content-Type': 'application/json' }, content })
  })

beforeAll(async () => {
  // A write reaches the other services in front of one WordPress: each zone has one of its own.
  for (const { zone } of zones) sites.set(zone, await startSite(zone))
  cloudflare = await startOrigin(async (request, wire, count) => {
    const zone = /zones\/(\w+)\//.exec(request.target)?.[1] ?? ''
    await (failing.get(zone) ?? success)(request, wire, count)
  })
  gateway = await startGatewayProcess({
    log: { level: 'info' },
    services: Object.fromEntries(
      zones.map(({ zone, onFailure }) => [
        zone,
        siteService(sites.get(zone)?.origin ?? '', {
          mount: `/${zone}`,
          cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] },
          downstream: {
            tags: 'Cache-Tag',
            settle: '1ms',
            receivers: [
              { type: 'cloudflare', url: cloudflare.origin, zone, secret: 'token', timeout: '3s', onFailure },
            ],
          },
        }),
      ]),
    ),
  })
})
afterAll(async () => {
  failing.clear()
  await gateway?.stop()
  await cloudflare?.close()
  for (const site of sites.values()) await site.close()
})

const pathOf = (zone: string): string => `${gateway.origin}/${zone}/site/v2/posts/7`
const write = async (zone: string): Promise<readonly [status: number, code: unknown]> => {
  const response = await fetch(pathOf(zone), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
    body: '{"title":"x"}',
  })
  return [response.status, ((await response.json()) as { readonly code?: unknown }).code]
}
const read = async (zone: string) => {
  const response = await fetch(pathOf(zone))
  const { title } = (await response.json()) as { readonly title: number }
  return {
    title,
    tags: response.headers.get('cache-tag'),
    forCdn: response.headers.get('cdn-cache-control'),
  }
}
const admin = async (path: string): Promise<Record<string, unknown>> =>
  (await (await fetch(gateway.adminOrigin + path)).json()) as Record<string, unknown>
/** Why /readyz says that purges of a zone fail. */
const causesOf = async (zone: string): Promise<readonly unknown[]> => {
  const { degraded = [] } = (await admin('/readyz')) as {
    readonly degraded?: readonly { readonly service?: string; readonly cause?: string }[]
  }
  return degraded.filter(({ service }) => service === zone).map(({ cause }) => cause)
}
const linesOf = (zone: string, message: string): readonly unknown[] =>
  logLinesOf(gateway.program, message)
    .filter(({ service }) => service === zone)
    .map(({ reason }) => reason)

const firstWrite = {
  refuse: [504, 'trellis_receiver_unconfirmed'],
  wait: [200, undefined],
  lag: [200, undefined],
} as const
const nextWrite = { ...firstWrite, refuse: [503, 'trellis_receiver_behind'] } as const

test.concurrent.for(zones)(
  '$name, onFailure: $onFailure',
  async ({ zone, onFailure, script, cause }, { expect }) => {
    // A start purges everything twice.
    const purges = () => cloudflare.received.filter(({ target }) => target.includes(`/${zone}/`)).length
    await expect.poll(purges).toBeGreaterThanOrEqual(2)
    await expect.poll(() => causesOf(zone)).toEqual([])
    expect(await read(zone)).toMatchObject({ title: 0, forCdn: 'max-age=86400' })
    failing.set(zone, script)
    expect(await write(zone)).toEqual(firstWrite[onFailure])
    // Readers of Trellis see the write; Cloudflare may store nothing.
    expect(await read(zone)).toEqual({ title: 1, tags: null, forCdn: 'no-store' })
    await expect.poll(() => causesOf(zone)).toEqual([expect.stringMatching(new RegExp(`^(late|${cause})$`))])
    expect(await write(zone)).toEqual(nextWrite[onFailure])
    const isRefused = onFailure === 'refuse'
    expect(await read(zone)).toEqual({ title: isRefused ? 1 : 2, tags: null, forCdn: 'no-store' })
    expect((await admin('/status'))['receivers']).toContainEqual(
      expect.objectContaining({ service: zone, receiver: 'cloudflare', behind: true }),
    )
    expect(linesOf(zone, 'receiver-behind').at(-1)).toMatch(new RegExp(`^(late|${cause})$`))
    failing.delete(zone)
    await expect.poll(() => causesOf(zone)).toEqual([])
    await expect.poll(async () => (await write(zone))[0]).toBe(200)
    await expect.poll(async () => (await read(zone)).forCdn).toBe('max-age=86400')
    expect(linesOf(zone, 'receiver-caught-up').length).toBeGreaterThanOrEqual(2)
  },
)
