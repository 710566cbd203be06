import { readFile, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { poll, sign } from './companion/intake.ts'
import { type CompanionSite, startCompanionStack } from './companion/site.ts'

// The requests of a pair follow each other, so that the load of the machine meets both.

/**
 * Without a token the companion does nothing: the same files are loaded in both requests of a pair. The processor time of
 * each request, to its very end, is written down.
 */
const beside = `<?php
if ( isset( $_GET['without'] ) ) { define( 'TRELLIS_TOKEN', '' ); }
if ( isset( $_GET['pair'] ) ) {
	$seconds = function () {
		$u = getrusage();
		return $u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec'] + ( $u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec'] ) / 1e6;
	};
	$began = $seconds();
	$later = function ( $then ) { return function () use ( $then ) { register_shutdown_function( $then ); }; };
	register_shutdown_function( $later( $later( function () use ( $seconds, $began ) {
		file_put_contents( WP_CONTENT_DIR . '/seconds', ( isset( $_GET['without'] ) ? 0 : 1 ) . ' ' . 1000 * ( $seconds() - $began ) . "\\n", FILE_APPEND );
	} ) ) );
}
`

/** On a busy machine only processor time says something. */
const isIdle = (loadavg()[0] ?? 0) / cpus().length < 0.5

describeWith('mariadb', 'the cost of the WordPress companion', () => {
  let site: CompanionSite

  beforeAll(async () => {
    site = await startCompanionStack()
    await writeFile(`${site.site}/wp-content/mu-plugins/a.php`, beside)
    await poll(site.origin, 0)
  })
  afterAll(() => site?.stop())

  const timed = async (act: () => Promise<Response>): Promise<number> => {
    const began = performance.now()
    const answer = await act()
    await answer.arrayBuffer()
    return performance.now() - began
  }
  const median = (values: readonly number[]): number =>
    values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
  /** Median of the differences between the requests of a pair, in milliseconds. */
  const difference = async (
    pairs: number,
    one: (n: number) => Promise<Response>,
    other: (n: number) => Promise<Response>,
  ) => {
    const differences: number[] = []
    for (let n = -5; n < pairs; n += 1) {
      const isFirst = n % 2 === 0
      const early = await timed(() => (isFirst ? one(n) : other(n)))
      const late = await timed(() => (isFirst ? other(n) : one(n)))
      if (n >= 0) differences.push(isFirst ? early - late : late - early)
    }
    return median(differences)
  }

  /** Differences of a pair: of the time that the client waits, and of the processor time of PHP. */
  const cost = async (name: string, act: (query: string) => (n: number) => Promise<Response>) => {
    const file = `${site.site}/wp-content/seconds`
    await rm(file, { force: true })
    const waited = await difference(times(60, 300), act('?pair'), act('?pair&without'))
    const lines = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => line.split(' ').map(Number))
    const of = (kind: number): number => median(lines.filter(([one]) => one === kind).map(([, ms = 0]) => ms))
    const processor = of(1) - of(0)
    process.stdout.write(
      `${name}: the client waits ${waited.toFixed(1)} ms longer; PHP computes ${processor.toFixed(1)} ms longer than ${of(0).toFixed(1)} ms\n`,
    )
    return { waited, processor }
  }

  test('a save takes a few milliseconds longer', { timeout: 120_000 }, async () => {
    const save = (query: string) => (n: number) =>
      site.rest('PUT', `/wp/v2/posts/10${query}`, { title: `title ${n} ${query}` })
    const pushes = site.intake.pushes.length
    const { waited, processor } = await cost('a save', save)
    expect(site.intake.pushes.length - pushes).toBeGreaterThan(50)
    expect(processor).toBeLessThan(3)
    if (isIdle) expect(waited).toBeLessThan(5)
  })

  test('a read takes less than a millisecond longer', { timeout: 120_000 }, async () => {
    const read = (query: string) => () => fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10${query}`)
    const { waited, processor } = await cost('a read', read)
    expect(processor).toBeLessThan(1)
    if (isIdle) expect(waited).toBeLessThan(1)
  })

  test('a poll takes a few milliseconds more than a refusal', { timeout: 120_000 }, async () => {
    const { last } = await poll(site.origin, 0)
    const target = `/?trellis-changes=${last}`
    const ask = (headers: Record<string, string>) => () => fetch(site.origin + target, { headers })
    const more = await difference(times(60, 300), ask({ 'Trellis-Signature': sign('GET', target) }), ask({}))
    const whole = median(await Promise.all([timed(ask({ 'Trellis-Signature': sign('GET', target) }))]))
    process.stdout.write(
      `a poll takes ${more.toFixed(1)} ms more than a refusal, ${whole.toFixed(1)} ms in all\n`,
    )
    if (isIdle) expect(more).toBeLessThan(5)
  })

  test('a gateway that hangs costs a save its limit and no more', { timeout: 120_000 }, async () => {
    site.intake.behaviour = 'hang'
    const save = (query: string) => (n: number) =>
      site.rest('PUT', `/wp/v2/posts/11${query}`, { title: `title ${n} ${query}` })
    const more = await difference(9, save(''), save('?without=1'))
    process.stdout.write(`a save while the gateway hangs takes ${more.toFixed(0)} ms longer\n`)
    expect(more).toBeGreaterThan(250)
    if (isIdle) expect(more).toBeLessThan(320)
  })
})
