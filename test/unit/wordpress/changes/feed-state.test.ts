import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  askFrom,
  coldFeed,
  type Feed,
  type FeedReading,
  lost,
  readLog,
  safePosition,
} from '../../../../src/wordpress/changes/feed-state.ts'
import type { ChangeLog, LogRow } from '../../../../src/wordpress/changes/read-changes.ts'

const lastContactAt = (position: number, more: Partial<Feed> = {}): Feed => ({
  state: 'heard',
  incarnation: 'a1',
  position,
  unfinished: [],
  newest: undefined,
  fingerprint: 'f',
  ...more,
})

const closed = (sequence: number): LogRow => ({
  ...{ sequence, check: '' },
  state: 'closed',
  changes: [{ kind: 'user', id: sequence }],
})
const open = (sequence: number, reads = false): LogRow => ({ sequence, check: '', state: 'open', reads })

const response = (last: number, rows: readonly LogRow[], more: Partial<ChangeLog> = {}): ChangeLog => ({
  incarnation: 'a1',
  first: 1,
  last,
  fingerprint: 'f',
  rows,
  more: false,
  ...more,
})

const stepsIn = ({ steps }: FeedReading): readonly (number | string)[] =>
  steps.map((step) => (step.kind === 'apply' ? step.row.sequence : step.reason))

test('only a feed that was read completely is heard', () => {
  const states = ['cold', 'heard', 'behind', 'silent'] as const
  for (const state of states) {
    const feed = lastContactAt(5, { state })
    expect(readLog(feed, 5, response(5, [])).feed.state).toBe('heard')
    expect(readLog(feed, 5, response(7, [closed(7)])).feed.state).toBe('behind')
    expect(readLog(feed, 5, response(5, [], { incarnation: 'b2' })).feed.state).toBe('behind')
    expect(lost(feed).state).toBe(state === 'cold' ? 'cold' : 'silent')
  }
})

describe('one response of the log', () => {
  test.each<[string, Feed, ChangeLog, readonly (number | string)[], Partial<Feed>]>([
    ['nothing new', lastContactAt(5), response(5, []), [], { state: 'heard', position: 5 }],
    [
      'two rows',
      lastContactAt(5),
      response(7, [closed(6), closed(7)]),
      [6, 7],
      { state: 'heard', position: 7 },
    ],
    [
      'a row that is missing',
      lastContactAt(5),
      response(7, [closed(7)]),
      [7],
      { state: 'behind', position: 7 },
    ],
    [
      'an open row',
      lastContactAt(5),
      response(7, [open(6), closed(7)]),
      [7],
      { state: 'heard', position: 7 },
    ],
    [
      'a dead row',
      lastContactAt(5),
      response(6, [{ sequence: 6, check: '', state: 'dead' }]),
      ['unfinished-request'],
      { state: 'heard' },
    ],
    [
      'more to come',
      lastContactAt(5),
      response(9, [closed(6)], { more: true }),
      [6],
      { state: 'behind', position: 6 },
    ],
    ['first contact', coldFeed, response(500, []), ['first-contact'], { state: 'behind', position: 436 }],
    [
      'a new log',
      lastContactAt(5),
      response(3, [], { incarnation: 'b2' }),
      ['new-log'],
      { incarnation: 'b2', position: 0 },
    ],
    ['an older log', lastContactAt(5), response(3, []), ['went-back'], { state: 'behind', position: 0 }],
    ['a pruned log', lastContactAt(5), response(90, [], { first: 80 }), ['truncated'], { position: 79 }],
    [
      'other versions',
      lastContactAt(5),
      response(5, [], { fingerprint: 'g' }),
      ['fingerprint'],
      { fingerprint: 'g' },
    ],
    ['too many missing rows', lastContactAt(5), response(500, [closed(500)]), ['gap'], { state: 'behind' }],
    ['more, but nothing of it', lastContactAt(5), response(9, [open(6)], { more: true }), ['unreadable'], {}],
    ['a last row of any size', lastContactAt(5), response(Number.MAX_SAFE_INTEGER, []), ['gap'], {}],
  ])('%s', (_, feed, given, steps, after) => {
    const reading = readLog(feed, askFrom(feed), given)
    expect(stepsIn(reading)).toEqual(steps)
    expect(reading.feed).toMatchObject(after)
  })
})

test('a row that has closed since the last poll is polled at once', () => {
  const before = lastContactAt(9, { unfinished: [{ sequence: 6, state: 'open', polls: 0 }] })
  expect(askFrom(before)).toBe(9)
  const reading = readLog(before, 9, response(9, []))
  expect([reading.again, askFrom(reading.feed), reading.feed.state]).toEqual([true, 5, 'behind'])
  const next = readLog(reading.feed, 5, response(9, [6, 7, 8, 9].map(closed)))
  expect([stepsIn(next), next.feed.state, askFrom(next.feed)]).toEqual([[6, 7, 8, 9], 'heard', 9])
})

test('a row that stays missing is given up after three more polls, and everything is dropped', () => {
  let feed = lastContactAt(5)
  const seen: (number | string)[][] = []
  for (let poll = 0; poll < 5; poll += 1) {
    const reading = readLog(feed, askFrom(feed), response(7, askFrom(feed) < 7 ? [closed(7)] : []))
    seen.push([...stepsIn(reading)])
    feed = reading.feed
  }
  expect(seen).toEqual([[7], [7], [7], [7, 'gap'], []])
  expect(feed.state).toBe('heard')
})

test('a feed is not heard while a PHP request has been writing for two polls', () => {
  let feed = lastContactAt(5)
  const states: string[] = []
  for (let poll = 0; poll < 4; poll += 1) {
    const reading = readLog(feed, askFrom(feed), response(6, [open(6)]))
    expect([stepsIn(reading), reading.again]).toEqual([[], false])
    feed = reading.feed
    states.push(feed.state)
  }
  expect(states).toEqual(['heard', 'heard', 'behind', 'behind'])
  // Its row is asked for, although later rows were read already.
  const ended = readLog(feed, askFrom(feed), response(6, []))
  expect([ended.again, askFrom(ended.feed)]).toEqual([true, 5])
  const next = readLog(ended.feed, 5, response(6, [closed(6)]), true)
  expect([stepsIn(next), next.feed.state]).toEqual([[6], 'heard'])
})

test('an instance that starts goes on before every row that is not finished', () => {
  expect(safePosition(lastContactAt(9, { unfinished: [{ sequence: 4, state: 'open', polls: 0 }] }))).toBe(3)
  expect(safePosition(lastContactAt(9))).toBe(9)
})

test('a feed that was heard is silent when it is lost, and one that was never heard stays cold', () => {
  expect(lost(lastContactAt(5)).state).toBe('silent')
  expect(lost(coldFeed).state).toBe('cold')
})

type Write = { readonly opens: number; readonly closes: number; readonly dies: boolean }

/** A log in which rows become visible late, close late and die; its clock is the number of the poll. */
const logAt = (writes: readonly Write[], poll: number, asked: number, max: number): ChangeLog => {
  const visible = writes
    .map((write, index) => ({ ...write, sequence: index + 1 }))
    .filter(({ opens }) => opens <= poll)
  const rows = visible
    .map(({ sequence, closes, dies }): LogRow => {
      if (closes > poll) return open(sequence)
      return dies ? { sequence, check: '', state: 'dead' } : closed(sequence)
    })
    .filter((row) => row.sequence > asked || row.state === 'open')
  const last = Math.max(0, ...visible.map(({ sequence }) => sequence))
  return response(last, rows.slice(0, max), { more: rows.length > max })
}

// A row is committed at most two polls later than one that was begun after it.
const write = fc.record({ pause: fc.nat(2), late: fc.nat(2), lasts: fc.nat(5), dies: fc.boolean() })

const scheduled = (list: readonly { pause: number; late: number; lasts: number; dies: boolean }[]) => {
  let began = 0
  return list.map(({ pause, late, lasts, dies }): Write => {
    began += pause
    return { opens: began + late, closes: began + late + lasts, dies }
  })
}

/** The poll in which each row was applied, and in which everything was dropped for the last time. */
type Applied = { readonly rows: Map<number, number>; droppedAt: number }

const readAll = (from: Feed, writes: readonly Write[], poll: number, max: number, applied: Applied): Feed => {
  let feed = from
  for (let page = 0; page < 40; page += 1) {
    const asked = askFrom(feed)
    const reading = readLog(feed, asked, logAt(writes, poll, asked, max), page > 0)
    for (const step of reading.steps) {
      if (step.kind === 'apply') applied.rows.set(step.row.sequence, poll)
      else applied.droppedAt = poll
    }
    feed = reading.feed
    if (!reading.again) break
  }
  return feed
}

const missedRows = (
  writes: readonly Write[],
  poll: number,
  { rows, droppedAt }: Applied,
): readonly number[] =>
  writes.flatMap(({ closes }, index) => {
    const isKnown = Math.max(rows.get(index + 1) ?? -1, droppedAt) >= closes
    return closes > poll || isKnown ? [] : [index + 1]
  })

test('when a feed is heard, every row that had closed was applied or everything was dropped after it', () => {
  fc.assert(
    fc.property(
      fc.array(write, { maxLength: 24 }),
      fc.integer({ min: 12, max: 40 }),
      fc.array(fc.boolean(), { maxLength: 20 }),
      (list, max, failing) => {
        const writes = scheduled(list)
        const applied: Applied = { rows: new Map(), droppedAt: -1 }
        let feed = coldFeed
        const polls = 20 + Math.max(0, ...writes.map(({ closes }) => closes))
        for (let poll = 0; poll < polls; poll += 1) {
          feed = failing[poll] === true ? lost(feed) : readAll(feed, writes, poll, max, applied)
          if (feed.state === 'heard') expect(missedRows(writes, poll, applied)).toEqual([])
        }
        // Nothing is missing for ever.
        expect(feed.state).toBe('heard')
      },
    ),
    { numRuns: 300 },
  )
})
