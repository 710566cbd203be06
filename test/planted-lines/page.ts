import type { FaultInLine } from './fault-in-line.ts'

/** By the number of the fault: the test that fails, or `not found`. */
export type Found = Readonly<Record<string, string>>

const head = (before: string, seed: string): string => `# Planted faults in single lines

Do the tests of today find what those found that stood before they were put in order (commit \`${before}\`)? Written by \`npm run planted:lines -- --before ${before} --seed ${seed} --page docs/evidence/planted-lines.md\`. The command copies both commits, and looks for lines of \`src\` that stand in each exactly once. In these it changes a comparison, a condition, a number, or leaves out a call; a hash of the seed and the line decides which of these changes are made, and nobody chooses them. All stand in the code behind a variable of the environment; a first run of \`npm test\` notes which test files reach which. Then each is made alone, in each of the two commits, and those files run until a test fails. Only \`npm test\` runs: the long suites and those with other programs may find more.
`

const cell = (text: string): string => text.replaceAll('|', '\\|')
const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)
const change = ({ text, start, end, becomes }: FaultInLine): string => {
  const changed = `${code(text.slice(start, end))} → ${code(becomes)}`
  return cell(`${code(text)}: ${becomes === 'undefined' ? 'left out' : changed}`)
}

const table = (names: readonly string[], rows: readonly (readonly string[])[]): string =>
  rows.length === 0
    ? 'None.\n'
    : [names, names.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |\n`).join('')

type Shown = {
  readonly commit: string
  readonly seed: string
  readonly note: string
  readonly faults: readonly FaultInLine[]
  readonly before: Found
  readonly after: Found
  /** By the text of a line: why no test can find its fault, or why none should. */
  readonly reasons: Readonly<Record<string, string>>
}

export const pageOf = ({ commit, seed, note, faults, before, after, reasons }: Shown): string => {
  const all = faults.map((fault, index) => {
    const isFound = (by: Found): boolean => by[index] !== undefined
    const reason = reasons[fault.text]
    return { fault, reason, wasFound: isFound(before), isFound: isFound(after), test: after[index] ?? '' }
  })
  const share = (of: typeof all, count: number): string => {
    const visible = of.filter(({ reason }) => reason === undefined).length
    return `${count} of ${visible} (${((100 * count) / visible).toFixed(0)} %)`
  }
  const summary = (name: string, of: typeof all): string[] => [
    name,
    String(of.length),
    String(of.filter(({ reason }) => reason !== undefined).length),
    share(of, of.filter(({ wasFound, reason }) => wasFound && reason === undefined).length),
    share(of, of.filter(({ isFound, reason }) => isFound && reason === undefined).length),
  ]
  const areas = [...new Set(faults.map(({ area }) => area))]
  const by = areas.map((area) =>
    summary(
      area,
      all.filter(({ fault }) => fault.area === area),
    ),
  )
  const place = ({ after: { file } }: FaultInLine): string => `\`${file}\``
  const rows = (which: typeof all): string[][] => which.map(({ fault }) => [place(fault), change(fault)])
  return [
    head(commit, seed),
    note === '' ? '' : `\n${note}\n\n`,
    table(['area', 'planted', 'without effect', 'found before', 'found now'], [...by, summary('all', all)]),
    '\n## Found before, and not now\n\n',
    table(['file', 'fault'], rows(all.filter((one) => one.wasFound && !one.isFound && !one.reason))),
    '\n## Found now, and not before\n\n',
    table(['file', 'fault'], rows(all.filter((one) => !one.wasFound && one.isFound && !one.reason))),
    '\n## Not found by either\n\n',
    table(['file', 'fault'], rows(all.filter((one) => !one.wasFound && !one.isFound && !one.reason))),
    '\n## Without an effect\n\n',
    table(
      ['file', 'fault', 'why'],
      all.flatMap(({ fault, reason }) => (reason ? [[place(fault), change(fault), cell(reason)]] : [])),
    ),
    '\n## Found now\n\n',
    table(
      ['file', 'fault', 'the first test that fails'],
      all.filter((one) => one.isFound).map(({ fault, test }) => [place(fault), change(fault), cell(test)]),
    ),
  ].join('')
}
