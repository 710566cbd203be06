import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { checkConfig } from '../../../src/gateway/load-config.ts'

type Tree = { readonly [key: string]: unknown }

const faultsOf = async (config: Tree): Promise<string[]> => {
  const result = await checkConfig(stringify(config), {})
  return result.kind === 'ok' ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`)
}
const open = (more: Tree): Tree => ({
  contract: 'open',
  mount: '/',
  upstream: { targets: ['http://a.test'] },
  ...more,
})
const withHosts = (...hosts: readonly unknown[]): Tree => ({ services: { a: open({ hosts }) } })

describe('hosts', () => {
  test.each([
    'blog.example',
    'BLOG.example',
    '*.shop.example',
    '*.example',
    'localhost',
    'xn--bcher-kva.example',
    '127.0.0.1',
    '[::1]',
    'a_b.example',
    '1.example',
  ])('%s is one', async (host) => {
    expect(await faultsOf(withHosts(host))).toEqual([])
  })

  const plain = 'expected a host name, e.g. blog.example or *.shop.example'
  const wildcard = 'expected at most one wildcard, as the first label: *.shop.example'
  test.each([
    ['', plain],
    ['a b.example', plain],
    ['a..example', plain],
    ['.example', plain],
    ['-a.example', plain],
    [`${'a'.repeat(64)}.example`, plain],
    ['https://blog.example', plain],
    ['blog.example/x', plain],
    ['user@blog.example', plain],
    ['1.2.3', plain],
    ['1.2.3.256', plain],
    ['blog.example:443', 'a host has no port: listen.port is the port of all hosts'],
    ['blog.example.', 'a host has no dot at its end'],
    ['b\u00fccher.example', 'expected the ASCII form of the name: xn--bcher-kva.example'],
    ['*.b\u00fccher.example', 'expected the ASCII form of the name: xn--bcher-kva.example'],
    ['*', wildcard],
    ['a.*.example', wildcard],
    ['*.*.example', wildcard],
    ['a*.example', wildcard],
    ['*.127.0.0.1', 'an address has no wildcard'],
    ['*.[::1]', 'an address has no wildcard'],
    ['[2001:DB8:0:0::1]', 'expected an IPv6 address in its shortest form, e.g. [2001:db8::1]'],
    ['::1', plain],
  ])('%s is none', async (host, message) => {
    expect(await faultsOf(withHosts(host))).toEqual([`services.a.hosts[0]: ${message}`])
  })

  test('a name in the Punycode form is one where Node takes it for the form of a name, which newer versions do not check', async () => {
    const fault = 'services.a.hosts[0]: expected a valid ASCII form of a name (xn--...)'
    expect(await faultsOf(withHosts('xn--a.example'))).toEqual(
      URL.canParse('http://xn--a.example') ? [] : [fault],
    )
  })

  test('two services with a host and a mount in common are named', async () => {
    const services = {
      one: open({ hosts: ['x.example', 'Blog.example'] }),
      two: open({ hosts: ['blog.EXAMPLE', '*.blog.example'] }),
      three: open({ hosts: ['blog.example'], mount: '/deep' }),
      four: open({ hosts: ['blog.example', 'blog.example'], mount: '/four' }),
      five: open({}),
      six: open({}),
    }
    expect(await faultsOf({ services })).toEqual([
      'services.two.hosts[0]: two and one both answer blog.example at /: give each its own host or path',
      'services.four.hosts[1]: blog.example is listed twice',
      'services.six.mount: / is already the mount of five: give each service its own path, or hosts',
    ])
  })

  test('a site whose upstream sees the host has no wildcard', async () => {
    const site = { contract: 'site', hosts: ['*.shop.example'] }
    const upstream = { targets: ['http://a.test'], host: 'preserve' }
    expect(await faultsOf({ services: { site: { ...site, upstream } } })).toEqual([
      expect.stringMatching(/^services\.site\.hosts: /),
    ])
    const fine = { ...site, upstream: { targets: ['http://a.test'] } }
    expect(await faultsOf({ services: { site: fine } })).toEqual([])
  })
})

describe('response headers', () => {
  const withHeaders = (responseHeaders: Tree): Tree => ({ services: { a: open({ responseHeaders }) } })

  test.each([
    'Content-Length',
    'transfer-encoding',
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'Trailer',
    'TE',
    'Upgrade',
    'Date',
    'Content-Encoding',
    'Content-Range',
  ])('%s can be neither set nor removed', async (name) => {
    const message = 'this header frames the message or belongs to the connection: only the gateway writes it'
    expect(await faultsOf(withHeaders({ set: { [name]: 'x' } }))).toEqual([
      `services.a.responseHeaders.set.${name}: ${message}`,
    ])
    expect(await faultsOf(withHeaders({ remove: [name] }))).toEqual([
      `services.a.responseHeaders.remove[0]: ${message}`,
    ])
  })

  test.each([
    ['X-A\r\nX-B', 'x'],
    ['X A', 'x'],
    ['', 'x'],
    ['X-A', 'x\r\nX-B: y'],
    ['X-A', 'x\n'],
    ['X-A', ' x'],
    ['X-A', ''],
    ['X-A', '\u00e9'],
    ['X-A', '\u0000'],
    ['X-A', 'x'.repeat(8_193)],
  ])('%j with the value %j is no header', async (name, value) => {
    expect(await faultsOf(withHeaders({ set: { [name]: value } }))).toHaveLength(1)
  })

  test('a name in two spellings, or in both lists, is a fault', async () => {
    expect(
      await faultsOf(withHeaders({ set: { 'X-A': '1', 'x-a': '2', 'X-B': '3' }, remove: ['x-b'] })),
    ).toEqual([
      'services.a.responseHeaders.set.x-a: the header is listed twice',
      'services.a.responseHeaders.set.X-B: the header is in remove as well; set replaces what is there',
    ])
  })
})

describe('certificates by host', () => {
  const pem = (name: string): string =>
    readFileSync(new URL(`../../gateway/fixtures/upstream-tls/${name}`, import.meta.url), 'utf8')
  const pair = (name: string): Tree => ({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) })
  const withTls = (tls: Tree): Tree => ({ listen: { tls }, services: { a: open({}) } })

  test('need a default certificate, matching keys and their own hosts', async () => {
    const blog = { hosts: ['blog.example'], ...pair('blog') }
    expect(await faultsOf(withTls({ ...pair('good'), certificates: [blog] }))).toEqual([])
    expect(await faultsOf(withTls({ certificates: [blog] }))).toEqual([
      'listen.tls.certificates: requires listen.tls.cert and key, for clients that ask for another host or for none',
    ])
    const mixed = { ...blog, key: pem('shop.key') }
    const certificates = [blog, { ...mixed, hosts: ['BLOG.example', 'b.example', 'b.example'] }]
    expect(await faultsOf(withTls({ ...pair('good'), certificates }))).toEqual([
      expect.stringMatching(/^listen\.tls\.certificates\[1\]\.hosts\[0\]: blog\.example is listed twice/),
      expect.stringMatching(/^listen\.tls\.certificates\[1\]\.hosts\[2\]: b\.example is listed twice/),
      expect.stringMatching(/^listen\.tls\.certificates\[1\]\.cert: cert and key do not match/),
    ])
  })

  test('are secrets', async () => {
    const result = await checkConfig(
      stringify(withTls({ ...pair('good'), certificates: [{ hosts: ['blog.example'], ...pair('blog') }] })),
      {},
    )
    expect(JSON.stringify(result.kind === 'ok' && result.config)).not.toContain('PRIVATE KEY')
  })
})
