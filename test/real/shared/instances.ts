import { checkedService } from '../../properties/checked-service.ts'
import { livingWorkers } from '../../properties/living-workers.ts'
import { lineToEach, type Member } from '../../properties/stopped-member.ts'
import type { VersionedUpstream } from '../../properties/versioned-upstream.ts'
import { certificatePath } from '../../support/certificates.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { openLine } from '../../support/held-line.ts'
import { freePort } from '../../support/ports.ts'
import { type CutLine, startCutLine } from './cut-line.ts'
import { type RedisServer, startRedisServer } from './redis-server.ts'

export const leaseMs = 500
export const forgetAfterMs = 2_000

/** One gateway program, and its line to the store. */
export type Instance = { readonly gateway: GatewayProcess; readonly line: CutLine }

/** Gateways that share one real redis-server. */
export type Instances = {
  readonly redis: RedisServer
  /** Those that run. */
  readonly all: readonly Instance[]
  /** Held lines to one process of each; those of one instance's workers where it has some. */
  members(): Promise<readonly Member[]>
  /** Kills all processes of one at once, and starts another one in its place. */
  replace(instance: Instance): Promise<void>
  stop(): Promise<void>
}

export type InstancesOptions = {
  readonly upstream: VersionedUpstream
  readonly workers: number
  readonly writes?: 'go-on' | 'refuse-while-cut-off'
  /** Redis is spoken to by TLS, and everything in it is signed. */
  readonly secured?: boolean
}

const tlsSettings = (port: number): readonly string[] => [
  ...[
    '--tls-port',
    String(port),
    '--tls-cert-file',
    certificatePath('good.pem'),
    '--tls-key-file',
    certificatePath('good.key'),
  ],
  ...['--tls-ca-cert-file', certificatePath('ca.pem'), '--tls-auth-clients', 'no'],
]

const startBehind = async (
  line: CutLine,
  { upstream, workers, writes = 'go-on', secured = false }: InstancesOptions,
): Promise<Instance> => {
  const gateway = await startGatewayProcess({
    workers,
    log: { level: 'info' },
    cache: {
      shared: {
        url: `${secured ? 'rediss' : 'redis'}://127.0.0.1:${line.port}`,
        ...(secured ? { key: 'k'.repeat(32), tls: { ca: `file:${certificatePath('ca.pem')}` } } : {}),
        lease: `${leaseMs}ms`,
        forgetAfter: `${forgetAfterMs}ms`,
        writes,
      },
    },
    services: { site: checkedService(upstream) },
  })
  return { gateway, line }
}

const whole = async ({ program, origin }: GatewayProcess): Promise<Member> => ({
  line: await openLine(origin),
  signal: (name) => process.kill(-program.pid, name),
})

/** Starts a redis-server and two instances that have as many workers each. */
export const startInstances = async (options: InstancesOptions): Promise<Instances> => {
  const tlsPort = await freePort()
  const redis = await startRedisServer(...(options.secured === true ? tlsSettings(tlsPort) : []))
  const port = options.secured === true ? tlsPort : redis.port
  const lines = [await startCutLine(port), await startCutLine(port)]
  let all = await Promise.all(lines.map((line) => startBehind(line, options)))
  return {
    redis,
    get all() {
      return all
    },
    members: async () => {
      const each = await Promise.all(
        all.map(({ gateway }) =>
          options.workers === 1
            ? Promise.all([whole(gateway)])
            : lineToEach(gateway.origin, livingWorkers(gateway)),
        ),
      )
      return each.flat()
    },
    replace: async (instance) => {
      all = all.filter((one) => one !== instance)
      await instance.gateway.kill()
      all = [...all, await startBehind(instance.line, options)]
    },
    stop: async () => {
      await Promise.all(all.map(({ gateway }) => gateway.stop()))
      for (const line of lines) line.close()
      await redis.stop()
    },
  }
}
