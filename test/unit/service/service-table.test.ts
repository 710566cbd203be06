import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hostOf, urlAtHost } from '../../../src/http/targets.ts'
import { createServiceTable } from '../../../src/service/service-table.ts'

type Located = { readonly name: string; readonly hosts: readonly string[]; readonly mount: string }

const label = fc.constantFrom('a', 'b', 'xn--bcher-kva')
const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
const pattern = fc.oneof(
  host,
  host.map((name) => `*.${name}`),
)
const mount = fc.constantFrom('', '/a', '/a/b', '/ab')
const services = fc
  .array(fc.tuple(fc.uniqueArray(pattern, { maxLength: 3 }), mount), { maxLength: 6 })
  .map((rows): Located[] => {
    // The checker refuses two services with the same host and mount.
    const taken = new Set<string>()
    return rows.flatMap(([hosts, at], index) => {
      const places = (hosts.length === 0 ? [''] : hosts).map((one) => `${one} ${at}`)
      if (places.some((place) => taken.has(place))) return []
      for (const place of places) taken.add(place)
      return [{ name: `s${index}`, hosts, mount: at }]
    })
  })
const target = fc.constantFrom('/', '/a', '/a?x=/a/b', '/a/', '/a/b', '/a/b/c', '/ab', '/abc', '/A', '/b?')
const spelling = fc.record({
  upper: fc.boolean(),
  dot: fc.boolean(),
  port: fc.constantFrom('', ':', ':80', ':65535'),
})

/** How well a pattern fits: an exact host best, then the longest wildcard, then every host; -1 = not at all. */
const rank = (hosts: readonly string[], name: string): number => {
  if (hosts.length === 0) return 0
  const ranks = hosts.map((one) => {
    if (one === name) return 1_000
    return one.startsWith('*.') && name.endsWith(one.slice(1)) && name.length > one.length - 1
      ? one.length
      : -1
  })
  return Math.max(...ranks)
}
const fits = (prefix: string, path: string): boolean => path === prefix || path.startsWith(`${prefix}/`)

const best = (all: readonly Located[], name: string, path: string): Located | string => {
  const known = all.filter(({ hosts }) => rank(hosts, name) >= 0)
  if (known.length === 0 && all.some(({ hosts }) => hosts.length > 0)) return 'unknown-host'
  const [first] = known
    .filter((one) => fits(one.mount, path))
    .sort((a, b) => rank(b.hosts, name) - rank(a.hosts, name) || b.mount.length - a.mount.length)
  return first ?? 'no-service'
}

/** Some upstreams ignore case: a path that is another service's then is refused. */
const expected = (all: readonly Located[], name: string, path: string): Located | string => {
  const asSent = best(all, name, path)
  if (typeof asSent === 'string' || best(all, name, path.toLowerCase()) === asSent) return asSent
  return 'ambiguous'
}

describe('the service table', () => {
  test('chooses what a comparison of all services chooses, whatever the spelling of the host', () => {
    fc.assert(
      fc.property(services, host, target, spelling, (all, name, asked, { upper, dot, port }) => {
        const table = createServiceTable(all)
        const written = `${upper ? name.toUpperCase() : name}${dot ? '.' : ''}${port}`
        const choice = table.find(written, asked)
        const found = choice.kind === 'found' ? choice.service : choice.kind
        expect(found).toEqual(expected(all, name, asked.split('?', 1)[0] ?? ''))
        // What is remembered of the host changes nothing.
        expect(table.find(written, asked)).toEqual(choice)
      }),
      { numRuns: 2_000 },
    )
  })

  test('does not depend on the order of the services', () => {
    fc.assert(
      fc.property(services, host, target, (all, name, asked) => {
        const forward = createServiceTable(all).find(name, asked)
        expect(createServiceTable([...all].reverse()).find(name, asked)).toEqual(forward)
      }),
      { numRuns: 500 },
    )
  })

  test('without hosts ignores the host', () => {
    const table = createServiceTable([{ hosts: [], mount: '/a' }])
    expect(table.find('any.example', '/a/b').kind).toBe('found')
    expect(table.find('', '/b').kind).toBe('no-service')
  })

  test('remembers a bounded number of hosts', () => {
    let made = 0
    const table = createServiceTable([{ hosts: ['*.example'], mount: '' }], (service) => {
      made += 1
      return service
    })
    for (let i = 0; i < 5_000; i += 1) table.find(`h${i}.example`, '/')
    for (let i = 0; i < 5_000; i += 1) table.find('h4999.example', '/')
    expect(made).toBe(5_000)
    table.find('h0.example', '/')
    expect(made).toBe(5_001)
  })
})

describe('a host', () => {
  test.each([
    ['Blog.Example', 'blog.example'],
    ['blog.example.:80', 'blog.example'],
    ['[2001:DB8::1]:80', '[2001:db8::1]'],
    ['[::1]', '[::1]'],
    ['127.0.0.1:1', '127.0.0.1'],
    [':80', ':80'],
    ['', ''],
  ])('%s is %s', (authority, name) => {
    expect(hostOf(authority)).toBe(name)
  })

  test.each([
    ['https://gateway.example:8443/p', 'blog.example', 'https://blog.example:8443/p'],
    ['http://[::1]:80', 'a.example', 'http://a.example:80'],
    ['http://127.0.0.1', '[::1]', 'http://[::1]'],
    ['https://a.example', "b.example$&$'", "https://b.example$&$'"],
  ])('%s at %s is %s', (url, name, moved) => {
    expect(urlAtHost(url, name)).toBe(moved)
  })
})
