import { createHmac, randomBytes } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../support/breadth.ts'
import { describeWith } from '../support/requirements.ts'
import { poll, sign, token } from './companion/intake.ts'
import { type CompanionSite, startCompanionStack } from './companion/site.ts'

// The requests of a pair follow each other, so that the load of the machine meets both.

/**
 * For `?pair=with` and `?pair=without`: without a token the companion does nothing, and the same files are loaded in both. At the
 * very end of the request its processor time, its time in all and its number of SQL statements are written down, and for
 * `?pair=refused` as well.
 */
const measured = `<?php
if ( isset( $_GET['pair'] ) ) {
	if ( 'without' === $_GET['pair'] ) { define( 'TRELLIS_TOKEN', '' ); }
	$measure = function () {
		$u = getrusage();
		return 1000 * ( $u['ru_utime.tv_sec'] + $u['ru_stime.tv_sec'] ) + ( $u['ru_utime.tv_usec'] + $u['ru_stime.tv_usec'] ) / 1000;
	};
	$later = function ( $then ) { return function () use ( $then ) { register_shutdown_function( $then ); }; };
	$began = $measure();
	register_shutdown_function( $later( $later( function () use ( $measure, $began ) {
		$line = array( $_GET['pair'], $measure() - $began, 1000 * ( microtime( true ) - $_SERVER['REQUEST_TIME_FLOAT'] ), $GLOBALS['wpdb']->num_queries );
		file_put_contents( __DIR__ . '/measured', implode( ' ', $line ) . "\\n", FILE_APPEND );
	} ) ) );
}
?>`

const pairs = times(60, 300)

/** What a read takes without the companion on the machine whose milliseconds the limits are. A slower or busier one has higher limits. */
const processorTimeOfRead = 10

/** On a busy machine only counts and processor time say something. */
const isIdle = (loadavg()[0] ?? 0) / cpus().length < 0.5

type Cost = {
  /** Milliseconds that the client waits. */
  readonly waited: number
  /** Milliseconds of processor time of PHP. */
  readonly processor: number
  /** Milliseconds from the beginning of the request to its end in PHP. */
  readonly inPhp: number
  readonly statements: number
}

/** First quartile, median, third quartile. */
const quartiles = (values: readonly number[]): readonly number[] => {
  const sorted = values.toSorted((a, b) => a - b)
  return [1, 2, 3].map((at) => sorted[Math.floor((at * sorted.length) / 4)] ?? Number.NaN)
}

const median = (values: readonly number[]): number => quartiles(values)[1] ?? Number.NaN

describeWith('mariadb', 'the cost of the WordPress companion', () => {
  let site: CompanionSite
  /** How many times the processor time of the machine above a read takes here. */
  let slower = 1

  beforeAll(async () => {
    site = await startCompanionStack({ TRELLIS_PUSH_LIMIT_MS: '' })
    const config = `${site.site}/wp-config.php`
    await writeFile(config, measured + (await readFile(config, 'utf8')))
    // php-fpm looks at a file again after two seconds.
    await wait(2500)
    await poll(site.origin, 0)
    const { without } = await cost('a read, to know the machine', read)
    slower = Math.max(1, without.processor / processorTimeOfRead)
  })
  afterAll(() => site?.stop())

  const timed = async (act: () => Promise<Response>): Promise<number> => {
    const began = performance.now()
    const response = await act()
    await response.arrayBuffer()
    return performance.now() - began
  }

  type Act = (n: number) => Promise<Response>

  /** The differences between the requests of a pair, the second being the one without the companion, in milliseconds. */
  const differences = async (pairs: number, one: Act, other: Act): Promise<readonly number[]> => {
    const found: number[] = []
    for (let n = -5; n < pairs; n += 1) {
      const isFirst = n % 2 === 0
      const early = await timed(() => (isFirst ? one(n) : other(n)))
      const late = await timed(() => (isFirst ? other(n) : one(n)))
      if (n >= 0) found.push(isFirst ? early - late : late - early)
    }
    return found
  }

  /** What a request costs more than another, by default the same without the companion, and what the other costs: lower quartiles, of the wait the median. */
  const cost = async (
    name: string,
    act: (query: string) => Act,
    other = 'without',
  ): Promise<{ readonly more: Cost; readonly without: Cost }> => {
    const file = `${site.site}/measured`
    await rm(file, { force: true })
    const waited = median(await differences(pairs, act('?pair=with'), act(`?pair=${other}`)))
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    const rows = lines.map((line) => line.split(' '))
    const valuesOf = (kind: string, column: number): readonly number[] =>
      rows.filter(([one]) => one === kind).map((row) => Number(row[column]))
    // What disturbs the machine only adds: the lower quartile varies less than the median.
    const of = (kind: string, column: number): number => quartiles(valuesOf(kind, column))[0] ?? 0
    const others = valuesOf(other, 1)
    const [low = 0, , high = 0] = quartiles(valuesOf('with', 1).map((one, at) => one - (others[at] ?? one)))
    const costOf = (number: (column: number) => number, wait: number): Cost => ({
      waited: wait,
      processor: number(1),
      inPhp: number(2),
      statements: number(3),
    })
    const more = costOf((column) => of('with', column) - of(other, column), waited)
    const without = costOf((column) => of(other, column), 0)
    process.stdout.write(
      `${name}: the client waits ${waited.toFixed(1)} ms longer; ${more.statements} SQL statements more than ${without.statements}, ${more.processor.toFixed(2)} ms of processor time (of pairs: quartiles ${low.toFixed(2)} and ${high.toFixed(2)}) more than ${without.processor.toFixed(1)} ms, ${more.inPhp.toFixed(1)} ms in PHP more than ${without.inPhp.toFixed(1)} ms\n`,
    )
    return { more, without }
  }

  const read = (query: string) => () => fetch(`${site.origin}/index.php/wp-json/wp/v2/posts/10${query}`)

  const save =
    (id: number, body: (n: number) => object) =>
    (query: string): Act =>
    (n) =>
      site.rest('PUT', `/wp/v2/posts/${id}${query}`, body(n))

  test('a save sends four SQL statements more and takes at most 4 ms longer', async () => {
    const pushes = site.intake.pushes.length
    const { more } = await cost(
      'a save',
      save(10, (n) => ({ title: `title ${n} ${Math.random()}` })),
    )
    expect(site.intake.pushes.length - pushes).toBeGreaterThanOrEqual(pairs)
    expect(more.statements).toBe(4)
    expect(more.processor).toBeLessThan(2 * slower)
    if (isIdle) expect(more.waited).toBeLessThan(4 * slower)
  })

  test('a save with other categories sends at most ten SQL statements more', async () => {
    let saves = 0
    const act = save(12, () => {
      saves += 1
      return { categories: [2 + (saves % 3)] }
    })
    const { more } = await cost('a save with other categories', act)
    expect(more.statements).toBeLessThanOrEqual(10)
  })

  test('a read sends no SQL statement more and takes less than two milliseconds longer', async () => {
    const { more } = await cost('a read', read)
    expect(more.statements).toBe(0)
    expect(more.processor).toBeLessThan(2 * slower)
    if (isIdle) expect(more.waited).toBeLessThan(2 * slower)
  })

  test('a statement costs a POST no SQL statement and at most 0.3 ms of PHP', async () => {
    const act = (query: string) => () => {
      const nonce = randomBytes(16).toString('hex')
      const asked = createHmac('sha256', token).update(`ask\n${nonce}`).digest('hex')
      const headers: Record<string, string> = query.includes('unasked')
        ? {}
        : { 'Trellis-Nonce': `${nonce}.${asked}` }
      const body = new URLSearchParams({ action: 'none' })
      return fetch(`${site.origin}/wp-admin/admin-ajax.php${query}`, { method: 'POST', headers, body })
    }
    expect((await act('?pair=with')()).headers.get('trellis-statement')).toMatch(/^nothing; hmac=/)
    const { more } = await cost('a statement', act, 'unasked')
    expect(more.statements).toBe(0)
    expect(more.processor).toBeLessThan(0.3 * slower)
  })

  test('a poll without news sends two SQL statements more than a refused one and takes at most 5 ms of PHP', async () => {
    const { last } = await poll(site.origin, 0)
    const ask = (query: string) => () => {
      const target = `/${query}&trellis-changes=${last}`
      const signature = query.includes('refused') ? '' : sign('GET', target)
      return fetch(site.origin + target, { headers: { 'Trellis-Signature': signature } })
    }
    const { more, without } = await cost('a poll', ask, 'refused')
    expect(more.statements).toBe(2)
    expect(more.processor).toBeLessThan(slower)
    expect(more.processor + without.processor).toBeLessThan(5 * slower)
  })

  test('neither a poll nor a save reads a long log', async () => {
    const rowsRead = (code: string): string =>
      `$log = new Trellis_Log(); $log->query( 'FLUSH STATUS' ); ${code}; echo array_sum( array_column( $log->query( "SHOW SESSION STATUS LIKE 'Handler_read%'" ), 'Value' ) );`
    const fill = `for ( $n = 0; $n < 50; $n++ ) { ( new Trellis_Log() )->query( "INSERT INTO wp_trellis_changes (state, since, horizon, site, note, changes) VALUES " . implode( ',', array_fill( 0, 200, "(1, " . time() . ", 0, 1, '', '[]')" ) ) ); } ( new Trellis_Log() )->query( "ANALYZE TABLE wp_trellis_changes" );`
    expect((await site.php(fill)).code).toBe(0)
    const { last } = await poll(site.origin, 1_000_000)
    const ofPoll = await site.php(rowsRead(`$log->rows_after( ${last}, 500, 400000 )`))
    expect(Number(ofPoll.output)).toBeLessThan(50)
    const ofSave = await site.php(rowsRead(`$log->surroundings( ${last} )`))
    expect(Number(ofSave.output)).toBeLessThan(50)
  })

  test('a gateway that hangs costs a save its limit and no more', { timeout: 120_000 }, async () => {
    site.intake.behaviour = 'hang'
    const act = save(11, (n) => ({ title: `title ${n} ${Math.random()}` }))
    const more = median(await differences(9, act('?pair=with'), act('?pair=without')))
    process.stdout.write(`a save while the gateway hangs takes ${more.toFixed(0)} ms longer\n`)
    expect(more).toBeGreaterThan(250)
    if (isIdle) expect(more).toBeLessThan(320)
  })
})
