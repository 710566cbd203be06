import { checkedService } from '../../properties/checked-service.ts'
import { livingWorkers } from '../../properties/living-workers.ts'
import { lineToEach, type Member } from '../../properties/stopped-member.ts'
import type { VersionedUpstream } from '../../properties/versioned-upstream.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { openLine } from '../../support/held-line.ts'
import { type CutLine, startCutLine } from './cut-line.ts'
import { type RedisServer, startRedisServer } from './redis-server.ts'

export const leaseMs = 500
export const forgetAfterMs = Number(process.env['TRELLIS_FORGET_AFTER_MS'] ?? 2_000)

/** One gateway program, and its line to the store. */
export type Instance = { readonly gateway: GatewayProcess; readonly line: CutLine }

/** Gateways that share one real redis-server. */
export type Instances = {
  readonly redis: RedisServer
  readonly all: readonly Instance[]
  /** Held lines to one process of each; those of one instance's workers where it has some. */
  members(): Promise<readonly Member[]>
  stop(): Promise<void>
}

const startInstance = async (
  redis: RedisServer,
  upstream: VersionedUpstream,
  workers: number,
): Promise<Instance> => {
  const line = await startCutLine(redis.port)
  const gateway = await startGatewayProcess({
    workers,
    log: { level: 'info' },
    // A machine that is busy with other tests is no overload of the gateway under test.
    overload: { eventLoopDelay: '0s' },
    cache: {
      shared: {
        url: `redis://127.0.0.1:${line.port}`,
        lease: `${leaseMs}ms`,
        forgetAfter: `${forgetAfterMs}ms`,
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
export const startInstances = async (upstream: VersionedUpstream, workers: number): Promise<Instances> => {
  const redis = await startRedisServer()
  const all = [await startInstance(redis, upstream, workers), await startInstance(redis, upstream, workers)]
  return {
    redis,
    all,
    members: async () => {
      const each = await Promise.all(
        all.map(({ gateway }) =>
          workers === 1 ? Promise.all([whole(gateway)]) : lineToEach(gateway.origin, livingWorkers(gateway)),
        ),
      )
      return each.flat()
    },
    stop: async () => {
      await Promise.all(all.map(({ gateway }) => gateway.stop()))
      for (const { line } of all) line.close()
      await redis.stop()
    },
  }
}
