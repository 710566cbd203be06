import { once } from 'node:events'
import { createServer } from 'node:net'

/** Pauses of the collector of one process, in milliseconds, longest last, by kind. */
export type Pauses = { readonly minor: readonly number[]; readonly major: readonly number[] }

/** Runs in the watched process, before its program: sends each pause as soon as it is known. Every pause is one entry. */
const watcher = (port: number): string => `
import { PerformanceObserver, constants } from 'node:perf_hooks'
import { connect } from 'node:net'
const line = connect(${port}, '127.0.0.1')
line.unref()
line.on('error', () => {})
new PerformanceObserver((list) => {
  for (const { duration, detail } of list.getEntries()) {
    line.write((detail.kind === constants.NODE_PERFORMANCE_GC_MINOR ? 'minor ' : 'major ') + duration + '\\n')
  }
}).observe({ entryTypes: ['gc'] })
`

/** Listens for the pauses of a process that is started with `argument`. */
export const watchCollector = async () => {
  let text = ''
  const server = createServer((socket) => {
    socket.on('data', (chunk) => {
      text += chunk.toString()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const of = (kind: string): readonly number[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith(kind))
      .map((line) => Number(line.slice(kind.length)))
      .sort((a, b) => a - b)
  return {
    argument: `--import=data:text/javascript,${encodeURIComponent(watcher(port))}`,
    /** Since the last call. */
    take: (): Pauses => {
      const pauses = { minor: of('minor '), major: of('major ') }
      text = ''
      return pauses
    },
    close: () => server.close(),
  }
}
