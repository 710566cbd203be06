import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Nginx, startNginx } from '../support/nginx.ts'
import { freePort } from '../support/ports.ts'
import { describeWith } from '../support/requirements.ts'
import { forAll } from './for-all.ts'
import { type Mix, type MixedWrite, mixOn } from './hit-ratio/mix.ts'
import { basic } from './site-under-test.ts'
import { startWordPress, type WordPress } from './wordpress/start-wordpress.ts'

/** READS=10000 for a long look; SEED=n to see the same again. */
const reads = Number(process.env['READS'] ?? times(400, 5000))
const seed = Number(process.env['SEED'] ?? 2)
const readsOfWrite = 100
/** That a cache by time alone shows stale responses takes a few writes to see. */
const readsOfNginx = Math.min(reads, 200)

const interfacePath = '/index.php/wp-json/wp/v2'

type Reply = { readonly isHit: boolean; readonly shown: string }

const reply = async (address: string, hit: RegExp, header: string): Promise<Reply> => {
  const response = await fetch(address)
  const shown = JSON.stringify(await response.json())
  expect(response.status, address).toBe(200)
  return { isHit: hit.test(response.headers.get(header) ?? ''), shown }
}

const fromGateway = (address: string): Promise<Reply> => reply(address, /^trellis; ?hit/, 'cache-status')
const fromNginx = (address: string): Promise<Reply> => reply(address, /^HIT$/, 'x-cache')

const startGatewayFor = (wordpress: WordPress, port: number): Promise<TestGateway> =>
  startTestGateway({
    listen: { host: '127.0.0.1', port },
    services: {
      site: {
        contract: 'site',
        mount: '/index.php/wp-json',
        names: 'same',
        upstream: { targets: [wordpress.origin], basePath: '/index.php/wp-json' },
        cache: { rules: [{ match: 'GET /wp/v2/**', ttl: '1h' }] },
      },
    },
  })

const send = async (root: string, wordpress: WordPress, write: MixedWrite): Promise<void> => {
  const { method, path, body } = write
  const headers = {
    Authorization: basic(wordpress.credentials.admin),
    'Content-Type': 'application/json',
  }
  const response = await fetch(`${root}/${path}`, { method, headers, body: JSON.stringify(body) })
  expect([200, 201], path).toContain(response.status)
  await response.arrayBuffer()
}

type Outcome = { hits: number; stale: number }

/** Reads by Zipf's law with a write in a hundred, once all that is going to be read has been read; each hit is compared with WordPress's own response. */
const played = async (
  wordpress: WordPress,
  root: string,
  read: (address: string) => Promise<Reply>,
  count = reads,
): Promise<Outcome> => {
  const mix = await mixOn(wordpress, seed)
  const outcome: Outcome = { hits: 0, stale: 0 }
  const own = new Map<string, string>()
  const ownResponse = async (target: string): Promise<string> => {
    const known = own.get(target)
    if (known !== undefined) return known
    const { shown } = await fromNginx(`${wordpress.restRoot}/wp/v2/${target}`)
    own.set(target, shown)
    return shown
  }
  const steps = Array.from({ length: count }, (_, done) => ({
    ...(done % readsOfWrite === readsOfWrite / 2 ? { write: mix.nextWrite() } : {}),
    target: mix.nextTarget(),
  }))
  await forAll([...new Set(steps.map(({ target }) => target))], (target) => read(`${root}/${target}`))
  for (const { write, target } of steps) {
    if (write !== undefined) {
      await send(root, wordpress, write)
      own.clear()
    }
    const { isHit, shown } = await read(`${root}/${target}`)
    if (!isHit) continue
    outcome.hits += 1
    if (shown !== (await ownResponse(target))) outcome.stale += 1
  }
  return outcome
}

const tell = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

const share = (part: number, whole: number): string => (part / whole).toFixed(3)

describeWith('php', 'a mix of reads and writes on a real WordPress', () => {
  let wordpress: WordPress
  let gateway: TestGateway
  let root: string

  beforeAll(async () => {
    const port = await freePort()
    wordpress = await startWordPress({ publicUrl: `http://127.0.0.1:${port}` })
    gateway = await startGatewayFor(wordpress, port)
    root = gateway.publicAddress + interfacePath
  })
  afterAll(async () => {
    await gateway?.close()
    await wordpress?.stop()
  })

  test(`200 URLs under Zipf's law, one write in ${readsOfWrite} reads: at least 88 % are hits and none is stale (SEED=${seed})`, async () => {
    const { hits, stale } = await played(wordpress, root, fromGateway)
    tell(`gateway: hit ratio ${share(hits, reads)} of ${reads} reads, ${stale} hits stale`)
    expect(stale).toBe(0)
    expect(hits / reads).toBeGreaterThan(0.88)
  }, 900_000)

  test('of the responses to these URLs that a write leaves as they are at least 90 % stay stored', async () => {
    const mix: Mix = await mixOn(wordpress, seed + 1)
    const readAll = (): Promise<Reply[]> => forAll(mix.targets, (target) => fromGateway(`${root}/${target}`))
    const counts = new Map<string, { writes: number; same: number; kept: number }>()
    let before = await readAll()
    for (let done = 0; done < times(8, 40); done += 1) {
      const write = mix.nextWrite()
      await send(root, wordpress, write)
      const after = await readAll()
      const same = after.filter(({ shown }, at) => shown === before[at]?.shown)
      const count = counts.get(write.kind) ?? { writes: 0, same: 0, kept: 0 }
      const kept = same.filter(({ isHit }) => isHit).length
      counts.set(write.kind, {
        writes: count.writes + 1,
        same: count.same + same.length,
        kept: count.kept + kept,
      })
      before = after
    }
    let [same, kept] = [0, 0]
    for (const [kind, count] of counts) {
      tell(
        `${kind}: ${count.writes} writes, ${share(count.kept, count.same)} of what did not change was left`,
      )
      same += count.same
      kept += count.kept
    }
    tell(`of what did not change, ${share(kept, same)} was left`)
    expect(kept / same).toBeGreaterThan(0.9)
  }, 900_000)
})

describeWith(
  'nginx',
  'the same mix through the cache of nginx, which keeps everything for 60 seconds',
  () => {
    let wordpress: WordPress
    let nginx: Nginx

    beforeAll(async () => {
      wordpress = await startWordPress()
      nginx = await startNginx(wordpress.origin, { keptFor: '60s' })
    })
    afterAll(async () => {
      await nginx?.stop()
      await wordpress?.stop()
    })

    test('has its hits, and stale ones among them', async () => {
      const root = nginx.address + interfacePath
      const { hits, stale } = await played(wordpress, root, fromNginx, readsOfNginx)
      tell(
        `nginx, 60 s: hit ratio ${share(hits, readsOfNginx)} of ${readsOfNginx} reads, ${stale} hits stale`,
      )
      expect(hits).toBeGreaterThan(0)
      expect(stale).toBeGreaterThan(0)
    }, 900_000)
  },
)
