// failed-files.mjs REPORT   Prints the test files that failed and may run again, from vitest's JSON report. A busy machine can fail a
// test that measures or waits for something. Exit code 1 and no line when they may not: more than six failed, none did, or a test
// that looks for stale responses failed with anything but a measured number beyond its bound, the time of the whole test or a
// program that did not start: a stale response counts even if it is seen once. A message may be only "expected 1 to be 0", so the
// source of the test decides what it looks for.
import { readFileSync } from 'node:fs'

const mostFiles = 6
const { testResults } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const failed = testResults.filter(({ status }) => status === 'failed')
const failuresOf = ({ message = '', assertionResults }) =>
  assertionResults.length === 0
    ? [{ fullName: '', message }]
    : assertionResults
        .filter(({ status }) => status === 'failed')
        .flatMap(({ fullName, failureMessages }) => failureMessages.map((message) => ({ fullName, message })))
const isOfMachine = (message) =>
  /expected [\d.e+]+ to be (less|greater) than (or equal to )?[\d.e+]+|(Test|Hook) timed out in|^Error: (ended with \S+ before it was|not) ready/.test(
    message,
  )
const startsTest = /^\s*(test|it|describe)\b/
/** The source of the test that failed; of the whole file where the message has no place in one test, and in no other file of tests. */
const sourceOf = ({ name }, message) => {
  const lines = readFileSync(name, 'utf8').split('\n')
  const places = [...message.matchAll(/(\/\S*\/test\/\S+?|\S+\.test\.ts):(\d+):\d+/g)]
  const starts = places.map(([, file, line]) =>
    file === name ? lines.findLastIndex((text, at) => at < Number(line) && startsTest.test(text)) : -1,
  )
  const [start = -1] = starts
  if (start === -1 || new Set(starts).size > 1) return lines.join('\n')
  const end = lines.findIndex((text, at) => at > start && startsTest.test(text))
  return lines.slice(start, end === -1 ? undefined : end).join('\n')
}
const looksForStale = (file, failure, message) =>
  /stale|\bolder\b|outdated|consistency|fuzz|differential|renderings|PromiseKept/i.test(
    [file.name, failure, message, sourceOf(file, message)].join('\n'),
  )
const mayBeStale = (file) =>
  failuresOf(file).some(
    ({ fullName, message }) => !isOfMachine(message) && looksForStale(file, fullName, message),
  )
if (failed.length === 0 || failed.length > mostFiles || failed.some(mayBeStale)) process.exitCode = 1
else for (const { name } of failed) process.stdout.write(`${name}\n`)
