// count.mjs REPORT...   Prints "N passed, N failed, N skipped" from vitest's JSON reports, as the last line of a CI run.
// Exit code 1 when anything failed or was skipped, or when a report is missing or empty.
import { readFileSync } from 'node:fs'

const counts = { passed: 0, failed: 0, skipped: 0 }
const countFile = ({ status, assertionResults }) => {
  const failedBefore = counts.failed
  for (const { status: outcome } of assertionResults) {
    if (outcome === 'passed') counts.passed += 1
    else if (outcome === 'failed') counts.failed += 1
    else counts.skipped += 1
  }
  // A file that could not even be loaded, or whose hooks failed, has no failed test of its own.
  if (status === 'failed' && counts.failed === failedBefore) counts.failed += 1
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
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = complete && counts.failed + counts.skipped === 0 ? 0 : 1
