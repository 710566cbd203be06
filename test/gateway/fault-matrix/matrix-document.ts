import { sections } from './all-faults.ts'
import type { Fault } from './fault.ts'

const cell = (text: string): string => text.replaceAll('|', ' or ')

const row = ({ name, seen, note }: Fault): string =>
  `| ${[name, '200 hit', ...seen, note ?? ''].map(cell).join(' | ')} |`

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
    'A status is what the client gets; `cut`: its connection ends before the answer is complete, so that it cannot be taken for',
    'one that is. `stored` reads what the cache holds, while the fault lasts and after the others; `read` is a GET of a row that',
    'is not stored; `write` a POST of JSON; `batch` the status of two written items (the batch itself is 207); `pass-through` a',
    'GET and `upload` a POST of 1 MiB, both streamed by an open service. Every timeout is 800 ms, 1.6 s in total.',
    '',
    'In each row, too: a read reaches the upstream at most twice and a write at most once, errors have the shape of the service,',
    'and once the fault is over the next reads show what the upstream then says: nothing of the fault was stored.',
    'After two rounds of all rows no socket, no place in a queue and no memory is left taken.',
    ...sections.flatMap(([title, faults]) => ['', `## ${title}`, '', ...head, ...faults.map(row)]),
    '',
  ].join('\n')
