import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { livingWorkers } from '../../properties/living-workers.ts'
import { startRedisServer } from '../../real/shared/redis-server.ts'
import { keyPair } from '../../support/certificates.ts'
import { siteService } from '../../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { pause } from '../../support/origin.ts'
import { freePort } from '../../support/ports.ts'
import { type Client, http1Client, http2Client } from './client.ts'

/** What stands before the upstreams of all lanes. */
export const arrangements = ['one process', 'one process, HTTP/2', 'two workers', 'two instances'] as const
export type Arrangement = (typeof arrangements)[number]

export type FuzzedGateways = {
  readonly clients: readonly Client[]
  reload(): Promise<void>
  /** Ends one process at once, and has another in its place. */
  kill(): Promise<void>
  /** SIGTERM, and another in its place. */
  drain(): Promise<void>
  settled(since: number): Promise<void>
  close(): Promise<void>
}

const timeouts = { headers: '500ms', idle: '300ms', total: '1s' }
const leaseMs = 400
const forgetAfterMs = 1_600

const document = `openapi: 3.1.0
info: { title: Things, version: '1' }
paths:
  /things:
    get: { responses: { '200': { description: Things } } }
    post:
      requestBody: { content: { application/json: { schema: { type: string } } } }
      responses: { '200': { description: Saved } }
`

/** Three services before each upstream; every second configuration has another one more. */
const servicesOf = (origins: readonly string[], file: string, isOther: boolean): Record<string, unknown> => {
  const cache = { rules: [{ match: 'GET /**', ttl: '1h' }] }
  const lanes = origins.flatMap((origin, lane) => {
    const upstream = {
      targets: [origin],
      timeouts,
      breaker: { failureRatio: 0 },
      eject: { after: 1_000 },
    }
    return [
      [`open${lane}`, { contract: 'open', mount: `/open${lane}`, upstream, cache }],
      [
        `site${lane}`,
        siteService(origin, {
          mount: `/site${lane}`,
          upstream: { ...upstream, basePath: '/index.php/wp-json' },
          cache,
        }),
      ],
      [`api${lane}`, { contract: 'openapi', mount: `/api${lane}`, document: file, upstream, cache }],
      ...(isOther ? [[`more${lane}`, { contract: 'open', mount: `/more${lane}`, upstream, cache }]] : []),
    ]
  })
  return Object.fromEntries(lanes)
}

export const startFuzzedGateways = async (
  arrangement: Arrangement,
  origins: readonly string[],
): Promise<FuzzedGateways> => {
  const folder = await mkdtemp(join(tmpdir(), 'write-fuzz-'))
  const file = join(folder, 'things.yaml')
  await writeFile(file, document)
  const isTls = arrangement === 'one process, HTTP/2'
  const redis = arrangement === 'two instances' ? await startRedisServer() : undefined
  let isOther = false
  const settings = (): Record<string, unknown> => ({
    log: { level: 'info' },
    drain: { delay: '0s', timeout: '300ms' },
    workers: arrangement === 'two workers' ? 2 : 1,
    services: servicesOf(origins, file, isOther),
    cache: {
      shared:
        redis === undefined
          ? {}
          : {
              url: `redis://127.0.0.1:${redis.port}`,
              lease: `${leaseMs}ms`,
              forgetAfter: `${forgetAfterMs}ms`,
            },
    },
    ...(isTls ? { listen: { tls: keyPair('good'), http2: true } } : {}),
  })
  type Member = { gateway: GatewayProcess; readonly ports: readonly [number, number] }
  const start = (ports: Member['ports']): Promise<GatewayProcess> =>
    startGatewayProcess(settings(), {}, [], ports)
  const members: Member[] = []
  for (let left = redis === undefined ? 1 : 2; left > 0; left -= 1) {
    const ports = [await freePort(), await freePort()] as const
    members.push({ gateway: await start(ports), ports })
  }
  let endedAt = Number.NEGATIVE_INFINITY
  let turn = 0
  const nextMember = (): Member => {
    turn += 1
    return members[turn % members.length] as Member
  }
  const clients = members.map((member) =>
    isTls
      ? http2Client(() => member.gateway.origin.replace('http:', 'https:'))
      : http1Client(() => member.gateway.origin),
  )
  const replaced = async (member: Member, end: () => Promise<unknown>): Promise<void> => {
    endedAt = Number.POSITIVE_INFINITY
    await end()
    member.gateway = await start(member.ports)
    endedAt = performance.now()
  }
  const killWorker = async ({ gateway }: Member): Promise<void> => {
    const [pid] = livingWorkers(gateway)
    if (pid === undefined) return
    endedAt = performance.now()
    process.kill(pid, 'SIGKILL')
    await pause(300)
  }
  return {
    clients,
    reload: async () => {
      isOther = !isOther
      for (const { gateway } of members) await gateway.reload(settings())
    },
    kill: async () => {
      const member = nextMember()
      if (arrangement === 'two workers') return killWorker(member)
      await replaced(member, () => member.gateway.kill())
    },
    drain: async () => {
      const member = nextMember()
      await replaced(member, () => member.gateway.stop())
    },
    settled: async (since) => {
      await pause(150)
      while (endedAt === Number.POSITIVE_INFINITY) await pause(100)
      // The others hear of a process that ended when its lease has ended.
      if (endedAt >= since && arrangement !== 'one process' && !isTls)
        await pause(2 * forgetAfterMs + 4 * leaseMs)
    },
    close: async () => {
      for (const client of clients) client.close()
      for (const { gateway } of members) await gateway.stop()
      await redis?.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
