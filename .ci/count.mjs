// count.mjs REPORT...   Prints the slowest files, what failed and, as the last line of a CI run, "N passed, N failed, N skipped", from
// vitest's JSON reports. Exit code 1 when anything failed or was skipped, or when a report is missing or empty.
import { readFileSync, writeFileSync } from 'node:fs'

const counts = { passed: 0, failed: 0, skipped: 0 }
const reportFailure = (file, title, message) => {
  counts.failed += 1
  process.stdout.write(`failed: ${file} > ${title}\n${message.split('\n').slice(0, 12).join('\n')}\n`)
}
const secondsOf = new Map()
const countFile = ({ name, status, message, assertionResults, startTime, endTime }) => {
  secondsOf.set(name, (endTime - startTime) / 1000)
  const failedBefore = counts.failed
  for (const { status: outcome, fullName, failureMessages = [] } of assertionResults) {
    if (outcome === 'passed') counts.passed += 1
    else if (outcome === 'failed') reportFailure(name, fullName, failureMessages.join('\n'))
    else counts.skipped += 1
  }
  // A file that could not even be loaded, or whose hooks failed, has no failed test.
  if (status === 'failed' && counts.failed === failedBefore) reportFailure(name, 'the file', message ?? '')
}

let complete = true
for (const report of process.argv.slice(2)) {
  const before = counts.passed
  try {
    JSON.parse(readFileSync(report, 'utf8')).testResults.forEach(countFile)
  } catch {
    counts.failed += 1
  }
  complete &&= counts.passed > before
}
const slowest = [...secondsOf]
  .filter(([, seconds]) => seconds >= 5)
  .sort(([, a], [, b]) => b - a)
  .slice(0, 60)
for (const [name, seconds] of slowest.slice(0, 30))
  process.stdout.write(`${seconds.toFixed(0).padStart(4)} s  ${name}\n`)
if (process.env.UPDATE_LONGEST !== undefined) {
  const root = new URL('..', import.meta.url).pathname
  const names = slowest.map(([name]) => name.replace(root, ''))
  writeFileSync(
    new URL('../test/support/longest-first.json', import.meta.url),
    `${JSON.stringify(names, null, 2)}\n`,
  )
}
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = complete && counts.failed + counts.skipped === 0 ? 0 : 1
