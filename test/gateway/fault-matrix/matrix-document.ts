import { sections } from './all-faults.ts'
import type { Fault } from './fault.ts'

const cell = (text: string): string => text.replaceAll('|', ' or ')

const row = ({ name, seen, note: invalidation }: Fault): string =>
  `| ${[name, '200 hit', ...seen, invalidation ?? ''].map(cell).join(' | ')} |`

const head = [
  '| The upstream … | stored | read | write | batch | pass-through | upload | |',
  '|---|---|---|---|---|---|---|---|',
]

/** docs/evidence/fault-matrix.md, made of the rows that are played. */
export const matrixDocument = (): string =>
  [
    '# What clients see when an upstream fails',
    '',
    'Written by `UPDATE_DOCS=1 npx vitest run test/gateway/fault-matrix`, which plays every row over real sockets and compares.',
    '',
    'Each cell is the status that the client gets; `cut` means that its connection closes before the response is complete.',
    '`stored` reads a cached response during the fault; `read` is a GET that is not cached; `write` is a POST of JSON; `batch` is',
    'the status of two written items (the batch itself is 207); `pass-through` is a GET and `upload` a POST of 1 MiB, both streamed',
    'by an open service. Every timeout is 800 ms, 1.6 s in total.',
    '',
    'For each row the test also checks that a read reaches the upstream at most twice and a write at most once, that errors have',
    'the format of the service, and that no faulty response is stored: once it is over, reads return the new state. After two',
    'rounds of all rows, no socket, queue slot or memory is leaked.',
    ...sections.flatMap(([title, faults]) => ['', `## ${title}`, '', ...head, ...faults.map(row)]),
    '',
  ].join('\n')
