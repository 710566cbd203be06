import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testAtLength } from '../support/at-length.ts'
import { isAll, times } from '../support/breadth.ts'
import { runCommand } from '../support/command.ts'
import { type PluginSet, pluginSets, setOfRandomWrites, shortSets } from './sites/archives.ts'
import { describeSite } from './sites/describe-site.ts'
import { lessWithCompanion, line, meanLeft, measureSite, openSite, storeAll } from './sites/measure.ts'
import { tagFaults } from './sites/measure-tags.ts'
import { writeRandomly } from './sites/write-randomly.ts'

/** Each set of plugins, on either WordPress, with what each write drops, and thousands of random writes: `npm run sites`. */
const sets: readonly PluginSet[] = isAll ? (Object.keys(pluginSets) as PluginSet[]) : shortSets

/** Pages of this plugin show a number that it makes of all options at once. */
const counting = `<?php add_filter( 'rest_prepare_page', function ( $response ) { $response->data['options'] = count( wp_load_alloptions( true ) ) > 0; return $response; } );`

/** Installs the plugin, and waits until PHP has read it. */
const installCounting = async ({ site }: Awaited<ReturnType<typeof openSite>>): Promise<void> => {
  const contents = join(site.site, 'wp-content')
  await mkdir(join(contents, 'plugins/counting'))
  await writeFile(join(contents, 'plugins/counting/counting.php'), counting)
  await writeFile(
    join(contents, 'mu-plugins/counting.php'),
    `<?php require_once WP_CONTENT_DIR . '/plugins/counting/counting.php';`,
  )
  const isInstalled = async (): Promise<boolean> =>
    (await (await fetch(`${site.origin}/index.php/wp-json/wp/v2/pages`)).text()).includes('"options":true')
  await expect.poll(isInstalled, { timeout: 30_000 }).toBe(true)
}

describeSite('a real WordPress with real plugins', () => {
  test.each(sets)(
    isAll
      ? '%s: what each of six writes leaves is not older than what WordPress says, and no less with the companion, which lists all that the routes of core depend on'
      : '%s: with the companion, which lists all that the routes of core depend on, what some writes leave is not older than what WordPress says',
    async (set) => {
      const measure = (withCompanion: boolean) => measureSite(set, withCompanion, '7.1', times(2, 1))
      const without = isAll ? await measure(false) : undefined
      const withCompanion = await measure(true)
      for (const measurement of without === undefined ? [withCompanion] : [without, withCompanion]) {
        process.stdout.write(`${line(measurement)}\n`)
        const older = measurement.writes.flatMap(({ write, stale }) =>
          stale.map((path) => `${write}: ${path}`),
        )
        expect(older).toEqual([])
        expect(meanLeft(measurement)).toBeGreaterThan(0.4)
      }
      // With the companion, what a plugin writes when a page is read for the first time delays storing.
      if (without !== undefined) {
        expect(without.storedAtSecond).toBeGreaterThan(30)
        expect(lessWithCompanion(without, withCompanion)).toEqual([])
      }
      expect(tagFaults(withCompanion.tags)).toEqual([])
    },
    1_200_000,
  )

  for (const withCompanion of [true, false])
    testAtLength(
      `random writes ${withCompanion ? 'with' : 'without'} the companion leave nothing that is older than what WordPress says`,
      async () => {
        const tell = (text: string): void => {
          process.stdout.write(`${text}\n`)
        }
        const run = { set: setOfRandomWrites, withCompanion, writes: 200, seed: 20_261_129, tell }
        const { older, refused, compared } = await writeRandomly(run)
        expect(older).toEqual([])
        expect(refused).toBeLessThan(run.writes / 2)
        expect(compared).toBeGreaterThan(0)
      },
      3_600_000,
    )

  testAtLength(
    'trellis advise says how many stored responses are described completely, and which plugin keeps the others from it',
    async () => {
      const measured = await openSite(shortSets[0] ?? 'none', true)
      try {
        const { gateway, paths } = measured
        await installCounting(measured)
        const stored = await storeAll(measured, paths)
        const { stdout } = await runCommand(['advise', '--admin', gateway.adminAddress])
        const [, complete, all] = /describes (\d+) of (\d+) stored responses completely/.exec(stdout) ?? []
        expect(Number(all)).toBeGreaterThanOrEqual(stored.length)
        expect(Number(complete)).toBeGreaterThan(Number(all) / 2)
        expect(Number(complete)).toBeLessThan(Number(all))
        expect(stdout).toMatch(/drops the others: plugin counting: all options \(\d+\)\./)
      } finally {
        await measured.stop()
      }
    },
    300_000,
  )
})
