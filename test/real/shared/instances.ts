import { checkedService } from '../../properties/checked-service.ts'
import { livingWorkers } from '../../properties/living-workers.ts'
import { lineToEach, type Member } from '../../properties/stopped-member.ts'
import type { VersionedUpstream } from '../../properties/versioned-upstream.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { openLine } from '../../support/held-line.ts'
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
}

const startBehind = async (
  line: CutLine,
  { upstream, workers, writes = 'go-on' }: InstancesOptions,
): Promise<Instance> => {
  const gateway = await startGatewayProcess({
    workers,
    log: { level: 'info' },
    cache: {
      shared: {
        url: `redis://127.0.0.1:${line.port}`,
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
  const redis = await startRedisServer()
  const lines = [await startCutLine(redis.port), await startCutLine(redis.port)]
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
