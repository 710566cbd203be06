// failed-files.mjs REPORT   Prints the test files that failed and may run again, from vitest's JSON report. A busy machine can fail a
// test that waits for something. Exit code 1 and no line when they may not: more than three failed, none did, or one of them looks for
// stale responses, which count even if they are seen once. A message may be only "expected 1 to be 0", so the source decides too.
import { readFileSync } from 'node:fs'

const mostFiles = 3
const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed')
const messages = ({ name, message = '', assertionResults }) => [
  name,
  message,
  ...assertionResults.flatMap((one) =>
    one.status === 'failed' ? [one.fullName, ...one.failureMessages] : [],
  ),
]
const looksForStale = (file) =>
  /stale|\bolder\b|outdated|consistency|fuzz|differential|renderings|PromiseKept/i.test(
    [...messages(file), readFileSync(file.name, 'utf8')].join('\n'),
  )
if (failed.length === 0 || failed.length > mostFiles || failed.some(looksForStale)) process.exitCode = 1
else for (const { name } of failed) process.stdout.write(`${name}\n`)
