import { execFile } from 'node:child_process'
import { copyFile, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { poll, token } from './companion/intake.ts'
import { type CompanionSite, startCompanionSite } from './companion/site.ts'

const restPath = '/index.php/wp-json'
const pollMs = 2_000

type Gateway = { readonly origin: string; readonly adminOrigin: string; stop(): Promise<unknown> }

describeWith('php', 'a gateway that reads the log of a WordPress', () => {
  let site: CompanionSite
  let polling: Gateway
  let pushed: Gateway

  const startGateway = (ports: readonly [number, number]): Promise<Gateway> =>
    startGatewayProcess(
      {
        services: {
          site: {
            contract: 'site',
            mount: restPath,
            names: 'same',
            upstream: { targets: [site.origin], basePath: restPath },
            cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1s' }] },
            changes: { token, poll: `${pollMs}ms`, ttlWhileHeard: '7d' },
          },
        },
      },
      {},
      [],
      ports,
    )

  beforeAll(async () => {
    const ports = [await freePort(), await freePort()] as const
    site = await startCompanionSite({}, [], [`http://127.0.0.1:${ports[1]}`])
    await poll(site.origin, 0)
    pushed = await startGateway(ports)
    polling = await startGateway([await freePort(), await freePort()])
  })
  afterAll(async () => {
    await pushed?.stop()
    await polling?.stop()
    await site?.stop()
  })

  const metrics = async ({ adminOrigin }: Gateway): Promise<string> =>
    (await fetch(`${adminOrigin}/metrics`)).text()
  const heard = (gateway: Gateway) =>
    expect.poll(() => metrics(gateway)).toMatch(/changes_state\{[^}]*"heard"[^}]*\} 1/)
  const drops = async (gateway: Gateway) =>
    (await metrics(gateway)).split('\n').filter((line) => /service_drops/.test(line))
  const lag = async (gateway: Gateway): Promise<number> =>
    Number(/changes_lag_seconds\{[^}]*\} (\S+)/.exec(await metrics(gateway))?.[1])
  /** Soon after a poll, so that the next one is most of an interval away. */
  const justPolled = (gateway: Gateway) =>
    expect.poll(() => lag(gateway), { interval: 20 }).toBeLessThan(pollMs / 4_000)

  /** The log was read after this call began. */
  const later = (gateway: Gateway): Promise<void> => {
    const began = performance.now()
    const readLater = async (): Promise<number> => {
      const asked = performance.now()
      return asked - 1_000 * (await lag(gateway)) - began
    }
    return expect.poll(readLater, { interval: 20 }).toBeGreaterThan(0)
  }

  const title = async ({ origin }: Pick<Gateway, 'origin'>, id: number): Promise<string> => {
    const response = await fetch(`${origin}${restPath}/wp/v2/posts/${id}`)
    return ((await response.json()) as { title: { rendered: string } }).title.rendered
  }
  const save = async (id: number, text: string): Promise<void> => {
    const response = await site.rest('PUT', `/wp/v2/posts/${id}`, { title: text })
    expect(response.status).toBe(200)
  }
  const database = (): string => site.dsn.replace('sqlite:', '')
  const copy = async (): Promise<void> => {
    await rm(`${database()}.copy`, { force: true })
    const code = `(new PDO($argv[1]))->exec("VACUUM INTO '" . $argv[2] . "'");`
    await promisify(execFile)('php', ['-r', code, site.dsn, `${database()}.copy`])
  }
  const restore = async (): Promise<void> => {
    for (const end of ['-wal', '-shm']) await rm(database() + end, { force: true })
    await copyFile(`${database()}.copy`, database())
  }

  beforeEach(async () => {
    await heard(polling)
    await heard(pushed)
    await save(10, 'before')
    await copy()
  })

  test('notices a database restored from a copy, though its log was written again and is longer than at the last poll', async () => {
    await save(10, 'lost')
    await later(polling)
    expect(await title(polling, 10)).toBe('lost')
    const { last } = await poll(site.origin, 1_000_000)
    await restore()
    for (const id of [11, 12, 13]) await save(id, 'other')
    expect((await poll(site.origin, 1_000_000)).last).toBeGreaterThan(last)
    expect(await title(site, 10)).toBe('before')
    await expect.poll(() => title(polling, 10), { interval: 50 }).toBe('before')
    await heard(polling)
  })

  test('notices a database restored from a copy, though only a push has brought the lost row', async () => {
    await justPolled(pushed)
    const before = await drops(pushed)
    await save(10, 'lost')
    expect(await title(pushed, 10)).toBe('lost')
    await restore()
    expect(await title(site, 10)).toBe('before')
    await expect.poll(() => title(pushed, 10), { interval: 50 }).toBe('before')
    await later(pushed)
    expect(await drops(pushed)).not.toEqual(before)
    await heard(pushed)
  })

  test('trusts nothing while the site is in maintenance and another server writes, and gets the changes afterwards', async () => {
    await later(polling)
    expect(await title(polling, 10)).toBe('before')
    const maintenance = `${site.site}/.maintenance`
    const before = await drops(polling)
    try {
      // For requests alone: the command line stands for the other server.
      await writeFile(maintenance, `<?php $upgrading = 'cli' === PHP_SAPI ? 0 : time();`)
      const saved = await site.php(`wp_update_post( array( 'ID' => 10, 'post_title' => 'other server' ) );`, {
        TRELLIS_GATEWAYS: '',
      })
      expect(saved.code).toBe(0)
      await expect.poll(() => metrics(polling)).toMatch(/changes_state\{[^}]*"silent"[^}]*\} 1/)
      const ready = await fetch(`${polling.adminOrigin}/readyz`)
      expect(await ready.json()).toMatchObject({ degraded: [{ reason: 'changes', service: 'site' }] })
    } finally {
      await rm(maintenance)
    }
    await expect.poll(() => title(polling, 10)).toBe('other server')
    await heard(polling)
    expect(await drops(polling)).toEqual(before)
  })
})
