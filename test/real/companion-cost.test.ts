import { writeFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { poll, sign } from './companion/intake.ts'
import { type CompanionSite, startCompanionStack } from './companion/site.ts'

// The requests of a pair follow each other, so that the load of the machine meets both.

describeWith('mariadb', 'the cost of the WordPress companion', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionStack()
    // Without a token the companion does nothing: the same files are loaded in both requests of a pair.
    const off = `<?php if ( isset( $_GET['without'] ) ) { define( 'TRELLIS_TOKEN', '' ); }`
    await writeFile(`${site.site}/wp-content/mu-plugins/a.php`, off)
    await poll(site.origin, 0)
  })
  afterAll(() => site?.stop())

  const timed = async (act: () => Promise<Response>): Promise<number> => {
    const began = performance.now()
    const answer = await act()
    await answer.arrayBuffer()
    return performance.now() - began
  }
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
  /** Median of the differences between the requests of a pair, in milliseconds. */
  const difference = async (pairs: number, one: (n: number) => Promise<Response>, other: (n: number) => Promise<Response>) => {
    const differences: number[] = []
    for (let n = -5; n < pairs; n += 1) {
      const isFirst = n % 2 === 0
      const early = await timed(() => (isFirst ? one(n) : other(n)))
      const late = await timed(() => (isFirst ? other(n) : one(n)))
      if (n >= 0) differences.push(isFirst ? early - late : late - early)
    }
    return median(differences)
  }

  test('a save takes at most a few milliseconds longer', { timeout: 120_000 }, async () => {
    const save = (query: string) => (n: number) => site.rest('PUT', `/wp/v2/posts/10${query}`, { title: `title ${n} ${query}` })
    const pushes = site.intake.pushes.length
    const cost = await difference(times(80, 300), save(''), save('?without=1'))
    process.stdout.write(`a save takes ${cost.toFixed(1)} ms longer\n`)
    expect(site.intake.pushes.length - pushes).toBeGreaterThan(80)
    // 3 ms on an idle machine; beside other tests twice as much.
    expect(cost).toBeLessThan(6)
  })

  test('a read takes no time that can be measured', { timeout: 120_000 }, async () => {
    const read = (query: string) => () => fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10${query}`)
    const cost = await difference(times(80, 300), read(''), read('?without=1'))
    process.stdout.write(`a read takes ${cost.toFixed(1)} ms longer\n`)
    expect(cost).toBeLessThan(3)
  })

  test('a poll takes a few milliseconds more than a refusal', { timeout: 120_000 }, async () => {
    const { last } = await poll(site.origin, 0)
    const target = `/?trellis-changes=${last}`
    const ask = (headers: Record<string, string>) => () => fetch(site.origin + target, { headers })
    const cost = await difference(times(80, 300), ask({ 'Trellis-Signature': sign('GET', target) }), ask({}))
    const whole = median(await Promise.all([timed(ask({ 'Trellis-Signature': sign('GET', target) }))]))
    process.stdout.write(`a poll takes ${cost.toFixed(1)} ms more than a refusal, ${whole.toFixed(1)} ms in all\n`)
    expect(cost).toBeLessThan(5)
  })

  test('a gateway that hangs costs a save its limit and no more', { timeout: 120_000 }, async () => {
    site.intake.behaviour = 'hang'
    const save = (query: string) => (n: number) => site.rest('PUT', `/wp/v2/posts/11${query}`, { title: `title ${n} ${query}` })
    const cost = await difference(9, save(''), save('?without=1'))
    process.stdout.write(`a save while the gateway hangs takes ${cost.toFixed(0)} ms longer\n`)
    expect(cost).toBeGreaterThan(290)
    expect(cost).toBeLessThan(350)
  })
})
