import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { cell, table } from '../promise-fuzz/fault-standing.ts'
import { faults, remarkFor, testOf } from './faults.ts'
import { findFaults, type Issue, startFaultySite } from './find-faults.ts'
import { narrowWrites } from './narrow-writes.ts'
import { moreReads, narrowReads } from './reads.ts'
import { rowReads, rowWrites } from './row-writes.ts'
import { type Write, writes } from './writes.ts'

/** Writes of the matrix that one rule decides about. */
const common: ReadonlySet<string> = new Set([
  'REST: a post is created',
  'REST: a draft is created',
  'REST: a category is renamed',
  'REST: a tag is created',
  'REST: a comment is added',
  'REST: a user is created',
  'REST: a widget area is changed',
  'XML-RPC: a page is created',
  'XML-RPC: an option is set',
  'PHP: a post is inserted with a given id',
  'PHP: terms alone',
  'PHP: a post is made sticky',
  '$wpdb: a type is changed',
])

/** The writes after which faults are looked for. */
export const faultWrites: readonly Write[] = [
  ...writes.filter(([title]) => common.has(title)),
  ...rowWrites,
  ...narrowWrites,
]

type Options = {
  /** Only faults whose names have one of these texts, separated by commas. */
  readonly only: string
  /** Other writes: all whose titles have one of these texts, separated by commas. */
  readonly focus: string
  /** Where the page is written; faults that it has are looked for as they were found. */
  readonly page: string | undefined
  tell(line: string): void
}

/** A page about all faults, for docs/evidence; a test repeats the writes and reads in its first table. */
const faultsPage = (issues: readonly Issue[], date: string): string => {
  const others = faults.filter(({ name }) => !issues.some(({ fault }) => fault === name))
  const tested = others.filter(({ name }) => testOf(name) !== '')
  const missed = others.filter((one) => !tested.includes(one))
  return [
    '# Planted faults in the WordPress companion',
    '',
    'Would the tests find a missing rule in the companion? Written by `npm run fuzz:promise -- --plant-companion`, with `PROMISE_PAGE` set. A fault removes or weakens one rule of `deploy/wordpress/trellis.php` (`test/real/companion/faults.ts`). The command sends writes to a real WordPress in every way (REST, forms, XML-RPC, cron), and once more for each fault on a copy of the earlier database. The functions of the gateway compute which responses it would keep. The fault is found if one of these is another now. `test/real/companion-faults.real.test.ts` repeats every twentieth row of the first table in CI, and the whole table with `npm run nightly`.',
    '',
    `On ${date}, of ${faults.length} faults ${issues.length} were found, and ${tested.length} others by a named test.`,
    '',
    '## Found',
    '',
    table(
      ['fault', 'the write', 'the read that was outdated after it'],
      issues.map(({ fault, write, read }) => [cell(fault), cell(write), `\`${read}\``]),
    ),
    '## Found by a test',
    '',
    'Only a response that is made between two writes shows these; a test of single steps fails with each.',
    '',
    table(
      ['fault', 'test'],
      tested.map(({ name }) => [cell(name), testOf(name)]),
    ),
    '## Not found',
    '',
    table(
      ['fault', 'remark'],
      missed.map(({ name }) => [cell(name), remarkFor(name)]),
    ),
  ].join('\n')
}

/** The findings in the first table of the page. */
export const issuesIn = (page: string): readonly Issue[] =>
  [...page.matchAll(/^\| (.+) \| (.+) \| `(.+)` \|$/gm)].map(([, fault = '', write = '', read = '']) => ({
    fault,
    write,
    read,
  }))

/** Plants each fault in the companion of a WordPress. Is each found that can show, and nothing stale without a fault? */
export const plantInCompanion = async ({ only, focus, page, tell }: Options): Promise<boolean> => {
  const known = page !== undefined && existsSync(page) ? issuesIn(await readFile(page, 'utf8')) : []
  const chosen = faults.filter(({ name }) => only.split(',').some((text) => name.includes(text)))
  const site = await startFaultySite()
  try {
    const { findings: issues, stale } = await findFaults(site, {
      known,
      faults: chosen,
      writes:
        focus === ''
          ? faultWrites
          : [...writes, ...rowWrites, ...narrowWrites].filter(([title]) =>
              focus.split(',').some((text) => title.includes(text)),
            ),
      paths: [...moreReads, ...narrowReads, ...rowReads],
      tell,
    })
    if (page !== undefined) await writeFile(page, faultsPage(issues, new Date().toISOString().slice(0, 10)))
    for (const one of stale) tell(`STALE without a fault: ${one}`)
    tell(`${issues.length} of ${chosen.length} faults found`)
    const isFound = (name: string): boolean => issues.some(({ fault }) => fault === name)
    return (
      stale.length === 0 &&
      chosen.every(({ name }) => isFound(name) || testOf(name) !== '' || remarkFor(name) !== '')
    )
  } finally {
    await site.stop()
  }
}
