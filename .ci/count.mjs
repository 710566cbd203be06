// count.mjs REPORT   Prints "N passed, N failed, N skipped" from vitest's JSON report, as the last line of a CI run.
// Exit code 1 when anything failed or was skipped, or when there is no report or nothing in it.
import { readFileSync } from 'node:fs'

const counts = { passed: 0, failed: 0, skipped: 0 }
try {
  for (const file of JSON.parse(readFileSync(process.argv[2], 'utf8')).testResults) {
    const failedBefore = counts.failed
    for (const { status } of file.assertionResults) {
      if (status === 'passed') counts.passed += 1
      else if (status === 'failed') counts.failed += 1
      else counts.skipped += 1
    }
    // A file that could not even be loaded, or whose hooks failed, has no failed test of its own.
    if (file.status === 'failed' && counts.failed === failedBefore) counts.failed += 1
  }
} catch {
  counts.failed += 1
}
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
process.exitCode = counts.failed + counts.skipped > 0 || counts.passed === 0 ? 1 : 0
