import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { siteService, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type Origin, startOrigin } from '../support/origin.ts'
import { freePort } from '../support/ports.ts'
import { type RunningProcess, startProcess, untilReady } from '../support/processes.ts'
import { describeWith } from '../support/requirements.ts'

const path = '/index.php/site-json/site/v2/posts/7'

describeWith('nginx', 'an nginx in front that is replaced', () => {
  let site: Origin
  let gateway: TestGateway
  let folder: string
  let address: string
  let version = 0

  beforeAll(async () => {
    site = await startOrigin(({ method }, wire) => {
      if (method === 'POST') version += 1
      const content = JSON.stringify({ id: 7, type: 'post', status: 'publish', title: version })
      wire.respond({ headers: { 'Content-Type': 'application/json' }, content })
    })
    gateway = await startTestGateway({
      services: {
        blog: siteService(site.origin, { cache: { rules: [{ match: 'GET /site/v2/**', ttl: '1h' }] } }),
      },
    })
    folder = await mkdtemp(join(tmpdir(), 'trellis-nginx-'))
    const port = await freePort()
    address = `http://127.0.0.1:${port}`
    const temporary = ['client_body', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${folder}/${name};`,
    )
    await writeFile(
      join(folder, 'nginx.conf'),
      `daemon off; master_process off; pid ${folder}/pid; error_log stderr crit; events { }
       http { access_log off; ${temporary.join(' ')} proxy_temp_path ${folder}/proxy;
         proxy_cache_path ${folder}/cache keys_zone=kept:1m;
         server { listen 127.0.0.1:${port}; location / {
           proxy_pass ${gateway.publicAddress}; proxy_cache kept; proxy_cache_valid 200 1h;
           proxy_ignore_headers Cache-Control Expires; add_header X-Cache $upstream_cache_status; } } }`,
    )
  })
  afterAll(async () => {
    await gateway?.close()
    await site?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const start = async (): Promise<RunningProcess> => {
    const program = startProcess('nginx', ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], {
      env: { PATH: `${process.env['PATH']}:/usr/sbin` },
    })
    await untilReady(program, async () => (await fetch(`${address}/none`)).text())
    return program
  }
  const read = async (origin = address): Promise<readonly unknown[]> => {
    const response = await fetch(origin + path)
    const { title } = (await response.json()) as { readonly title: number }
    return [title, response.headers.get('x-cache')]
  }
  const write = async (): Promise<number> => {
    const response = await fetch(gateway.publicAddress + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: 'Basic YTpi' },
      body: '{"title":"x"}',
    })
    return response.status
  }

  test('shows what the process before has stored, also from before a write, until its folder is emptied', async () => {
    let nginx = await start()
    try {
      expect([await read(), await read()]).toEqual([
        [0, 'MISS'],
        [0, 'HIT'],
      ])
      expect(await write()).toBe(200)
      expect(await read(gateway.publicAddress)).toEqual([1, null])
      expect(await read()).toEqual([0, 'HIT'])
      await nginx.stop()
      nginx = await start()
      // nginx is no receiver: Trellis waits for none, and does not notice the restart.
      expect(await read()).toEqual([0, 'HIT'])
      expect(await write()).toBe(200)
      expect(await read()).toEqual([0, 'HIT'])
      const ready = await (await fetch(`${gateway.adminAddress}/readyz`)).json()
      expect(ready).toMatchObject({ status: 'ready' })
      await nginx.stop()
      await rm(join(folder, 'cache'), { recursive: true })
      nginx = await start()
      expect([await read(), await read()]).toEqual([
        [2, 'MISS'],
        [2, 'HIT'],
      ])
    } finally {
      await nginx.stop()
    }
  })
})
