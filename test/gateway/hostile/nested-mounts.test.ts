import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeAfterAll } from '../../support/close.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Origin, startOrigin } from '../../support/origin.ts'
import { talk } from '../../support/talk.ts'

// One program behind two services: all of it is public but the paths below /admin, which need an API key.

let origin: Origin
let gateway: TestGateway

beforeAll(async () => {
  origin = await startOrigin((_received, wire) => wire.respond({ content: 'secret' }))
  const file = join(await mkdtemp(join(tmpdir(), 'trellis-')), 'keys')
  await writeFile(file, `demo:${'0'.repeat(64)}\n`)
  const access = { apiKeys: { file, required: 'all' } }
  const targets = [origin.origin]
  gateway = await startTestGateway({
    services: {
      all: { contract: 'open', mount: '/', upstream: { targets } },
      admin: { contract: 'open', mount: '/admin', upstream: { targets, basePath: '/admin' }, access },
      deep: { contract: 'open', mount: '/a/b', upstream: { targets, basePath: '/a/b' }, access },
      shop: { contract: 'open', mount: '/', hosts: ['shop.test'], upstream: { targets } },
      intern: {
        contract: 'open',
        mount: '/intern',
        hosts: ['shop.test'],
        upstream: { targets, basePath: '/intern' },
        access,
      },
    },
  })
})
closeAfterAll(() => [gateway, origin])
beforeEach(() => {
  origin.received.length = 0
})

const statusOf = async (method: string, target: string, host = 'a'): Promise<string> => {
  const request = `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
  const { bytes } = await talk(gateway.publicAddress, Buffer.from(request), {
    enough: '',
    silenceMs: 10_000,
  })
  return bytes.toString('latin1', 9, 12)
}

describe('a path that the upstream may read as one of a nested service', () => {
  test.each([
    '/%61dmin',
    '/%61dmin/users',
    '/%61%64%6d%69%6E/users?x=1',
    '//admin/users',
    '///admin',
    '/%2Fadmin/users',
    '/admin%2Fusers',
    '/admin%2fusers',
    '/admin;x=1/users',
    '/admin;/users',
    '/;x/admin/users',
    '/x/..;/admin/users',
    '/x/..;y/%61dmin/users',
    '/x/%2e%2e/admin/users',
    '/a/%62/users',
    '/a//b/users',
    '/%61/b/users',
    '/a%2Fb/users',
    '/a;x/b',
    'http://a/%61dmin/users',
    'http://a//admin/users',
  ])('%s is refused', async (target) => {
    for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'])
      expect(await statusOf(method, target)).toBe('400')
    expect(origin.received).toEqual([])
  })

  test.each(['/%69ntern/x', '//intern/x', '/intern%2Fx'])('%s is refused at a host', async (target) => {
    expect(await statusOf('GET', target, 'shop.test')).toBe('400')
    expect(await statusOf('GET', target, 'SHOP.test:8080')).toBe('400')
    expect(origin.received).toEqual([])
    // No service of another host is nested there.
    expect(await statusOf('GET', target)).toBe('200')
  })

  test.each(['/admin', '/admin/users', '/a/b', '/admin//users', '/admin/%75sers', '/admin?/'])(
    '%s needs the key',
    async (target) => {
      expect(await statusOf('GET', target)).toBe('401')
      expect(origin.received).toEqual([])
    },
  )

  test.each([
    '/administration',
    '/x/admin',
    '/x%2Fadmin',
    '/x;admin',
    '/a;x',
    '/%61',
    '/x//y',
    '/?q=/%61dmin',
  ])('%s reaches the public service', async (target) => {
    expect(await statusOf('GET', target)).toBe('200')
  })
})
