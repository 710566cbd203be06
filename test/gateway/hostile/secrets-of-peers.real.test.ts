import { afterAll, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedisServer } from '../../real/shared/redis-server.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { type Origin, pause, startOrigin } from '../../support/origin.ts'
import { describeWith } from '../../support/requirements.ts'

// What the gateway sends its peers about itself: the password of the second tier and what the collector of traces wants to
// see. Both peers work first, then refuse and break off; nothing that the gateway says then repeats a secret.

const planted = {
  tier: 'planted-live-tier-password',
  key: 'planted-key-of-the-shared-cache-1',
  oldKey: 'planted-key-of-the-shared-cache-2',
  otlpHeader: 'planted-otlp-field',
  otlpQuery: 'planted-otlp-query',
} as const

describeWith('redis', 'secrets for peers', () => {
  let redis: RedisServer
  let origin: Origin
  let collector: Origin
  let gateway: GatewayProcess

  beforeAll(async () => {
    redis = await startRedisServer()
    await redis.command('CONFIG', 'SET', 'requirepass', planted.tier)
    origin = await startOrigin((_, wire) =>
      wire.respond({ headers: { 'Cache-Control': 'max-age=60' }, content: 'x' }),
    )
    collector = await startOrigin((_, wire) => wire.respond({ content: '{}' }))
    gateway = await startGatewayProcess(
      {
        log: { level: 'trace' },
        tracing: { sampleRatio: 1, otlpUrl: `${collector.origin}/v1/traces?key=${planted.otlpQuery}` },
        cache: {
          shared: {
            url: `redis://:${planted.tier}@127.0.0.1:${redis.port}`,
            key: [planted.key, planted.oldKey],
          },
        },
        services: {
          open: {
            contract: 'open',
            mount: '/',
            upstream: { targets: [origin.origin] },
            cache: { profile: 'rfc-shared-cache' },
          },
        },
      },
      {
        OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${planted.otlpHeader}`,
        OTEL_BSP_SCHEDULE_DELAY: '200',
      },
    )
  })
  afterAll(async () => {
    await gateway.stop()
    await collector.close()
    await origin.close()
    await redis.stop()
  })

  const sampled = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  const askSome = async (): Promise<void> => {
    for (let i = 0; i < 5; i += 1) await (await fetch(`${gateway.origin}/a${i}`, { headers: sampled })).text()
  }

  test('peers get their secrets, and log, metrics and admin side never show them, also when the peers fail', async () => {
    await askSome()
    await expect.poll(() => collector.received.length).toBeGreaterThan(0)
    expect(collector.received[0]?.head).toContain(planted.otlpHeader)
    // Refused from here on: by the collector, and by a tier with another password.
    collector.script = (_, wire) => wire.respond({ status: 401, content: 'no' })
    const peer = (...words: string[]): Promise<string> => redis.command(...words).catch(() => '')
    expect(await peer('PING')).toContain('NOAUTH')
    await redis.restartEmpty(200)
    await redis.command('CONFIG', 'SET', 'requirepass', 'another')
    await askSome()
    await pause(1_500)
    collector.script = (_, wire) => wire.reset()
    await askSome()
    await pause(1_500)

    const pages = [
      '/metrics',
      '/readyz',
      '/config',
      '/status',
      '/cache/entries',
      '/drift',
      '/explain?url=/a1',
      '/',
    ]
    const said: string[] = []
    for (const path of pages) said.push(await (await fetch(gateway.adminOrigin + path)).text())
    expect(said[0]).toContain('trellis_shared')
    expect(said[2]).toContain('otlpUrl')
    const leaks = Object.entries(planted).flatMap(([name, value]) => [
      ...(gateway.program.output().includes(value) ? [`${name} in the log`] : []),
      ...said.flatMap((text, at) => (text.includes(value) ? [`${name} in ${pages[at]}`] : [])),
    ])
    expect(leaks).toEqual([])
  })
})
