// failed-files.mjs REPORT   Prints the test files that failed and may run again, from vitest's JSON report. A busy machine can fail a
// test that measures or waits for something. Exit code 1 and no line when they may not: more than six failed, none did, or a test of a
// file that looks for stale responses failed with anything but a measured number beyond its bound, the time of the whole test or a
// program that did not start: a stale response counts even if it is seen once. A message may be only "expected 1 to be 0", so the
// source decides what the file looks for.
import { readFileSync } from 'node:fs'

const mostFiles = 6
const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed')
const messagesOf = ({ message = '', assertionResults }) =>
  assertionResults.length === 0
    ? [message]
    : assertionResults.flatMap(({ status, failureMessages }) => (status === 'failed' ? failureMessages : []))
const isOfMachine = (message) =>
  /expected [\d.e+]+ to be (less|greater) than (or equal to )?[\d.e+]+|(Test|Hook) timed out in|^Error: (ended with \S+ before it was|not) ready/.test(
    message,
  )
const looksForStale = (file) =>
  /stale|\bolder\b|outdated|consistency|fuzz|differential|renderings|PromiseKept/i.test(
    [file.name, ...messagesOf(file), readFileSync(file.name, 'utf8')].join('\n'),
  )
const mayBeStale = (file) => !messagesOf(file).every(isOfMachine) && looksForStale(file)
if (failed.length === 0 || failed.length > mostFiles || failed.some(mayBeStale)) process.exitCode = 1
else for (const { name } of failed) process.stdout.write(`${name}\n`)
