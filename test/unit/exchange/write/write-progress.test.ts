import { expect, test } from 'vitest'
import { type WriteState, writeStates } from '../../../../src/exchange/events.ts'
import { WriteProgress } from '../../../../src/exchange/write/write-progress.ts'

/** How each state is reached from the first. */
const ways: Readonly<Record<WriteState, (write: WriteProgress) => void>> = {
  'not-sent': () => undefined,
  'partly-sent': (write) => write.partlySent(),
  sent: (write) => write.sent(),
  open: (write) => void write.open(),
  ended: (write) => void (write.open() && write.end()),
  'broken-off': (write) => {
    write.sent()
    write.breakOff()
  },
}

const writeIn = (state: WriteState) => {
  const seen: string[] = []
  const write = new WriteProgress({
    advanced: (to) => seen.push(to),
    illegal: (from, to) => seen.push(`illegal ${from} -> ${to}`),
  })
  ways[state](write)
  seen.length = 0
  return { write, seen }
}

/** The state after a call, and what the observer is told: a star where the transition is illegal. */
const table: Readonly<Record<WriteState, Readonly<Record<string, string>>>> = {
  'not-sent': { partlySent: 'partly-sent', sent: 'sent', open: 'open', end: '*', breakOff: 'not-sent' },
  'partly-sent': { partlySent: 'partly-sent', sent: 'sent', open: 'open', end: '*', breakOff: 'broken-off' },
  sent: { partlySent: 'sent', sent: 'sent', open: 'open', end: '*', breakOff: 'broken-off' },
  open: { partlySent: 'open', sent: 'open', open: '*', end: 'ended', breakOff: 'broken-off' },
  ended: { partlySent: '*', sent: '*', open: '*', end: '*', breakOff: 'ended' },
  'broken-off': { partlySent: '*', sent: '*', open: '*', end: '*', breakOff: 'broken-off' },
}
const targets: Readonly<Record<string, WriteState>> = {
  partlySent: 'partly-sent',
  sent: 'sent',
  open: 'open',
  end: 'ended',
}
const calls: Readonly<Record<string, (write: WriteProgress) => unknown>> = {
  partlySent: (write) => write.partlySent(),
  sent: (write) => write.sent(),
  open: (write) => write.open(),
  end: (write) => write.end(),
  breakOff: (write) => write.breakOff(),
}

const cells = writeStates.flatMap((from) =>
  Object.entries(table[from]).map(([call, to]) => [from, call, to] as const),
)

test.each(cells)('%s, %s: %s', (from, call, to) => {
  const { write, seen } = writeIn(from)
  const returned = calls[call]?.(write)
  if (to === '*') {
    expect(write.state).toBe('broken-off')
    expect(write.outcome).toBe('unknown')
    expect(seen).toEqual([`illegal ${from} -> ${targets[call]}`])
    expect(returned === true).toBe(false)
  } else {
    expect(write.state).toBe(to)
    expect(seen).toEqual(to === from ? [] : [to])
    expect(returned === false).toBe(false)
  }
})

test.each([
  ['not-sent', 'not-sent'],
  ['partly-sent', 'unknown'],
  ['sent', 'unknown'],
  ['open', 'unknown'],
  ['ended', undefined],
  ['broken-off', 'unknown'],
] as const)('the outcome of a write that is %s is %s', (state, outcome) => {
  expect(writeIn(state).write.outcome).toBe(outcome)
})
