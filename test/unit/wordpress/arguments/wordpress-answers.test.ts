import { describe, expect, test } from 'vitest'
import answers from './fixtures/wordpress-answers.json' with { type: 'json' }
import { ask } from './support.ts'

/** What a WordPress 6.7 with an administrator's credentials answered; `response` is there when its validation refused the request. */
type Recorded = {
  readonly row: string
  readonly method: string
  readonly path: Readonly<Record<string, string>>
  readonly query: string
  readonly content?: string
  readonly contentType?: string
  readonly status: number
  readonly answer?: { readonly code: string }
}

type Exception = {
  readonly reason: string
  readonly here: 'refused' | 'passed on'
  applies(recorded: Recorded): boolean
}

const bodyNames = (name: string, recorded: Recorded): boolean =>
  recorded.content?.startsWith(`{"${name}":`) === true

const exceptions: readonly Exception[] = [
  {
    reason: 'bytes that are not UTF-8 have no canonical form',
    here: 'refused',
    applies: ({ query }) => query.includes('%FF'),
  },
  {
    reason: 'an id in the content that contradicts the path would change another item',
    here: 'refused',
    applies: (recorded) =>
      bodyNames('id', recorded) && recorded.answer === undefined && !recorded.content?.includes('null'),
  },
  {
    reason: 'WordPress dies of an array where it expects a string',
    here: 'refused',
    applies: ({ status }) => status === 500,
  },
  {
    reason: 'which page templates there are only the theme knows',
    here: 'passed on',
    applies: (recorded) => bodyNames('template', recorded) && /:"/.test(recorded.content ?? ''),
  },
  {
    reason: 'a template that is not text is refused for its type, not for the names the theme knows',
    here: 'refused',
    applies: (recorded) => bodyNames('template', recorded) && recorded.answer !== undefined,
  },
  {
    reason: 'an item may keep the status it has, and only the upstream knows which that is',
    here: 'passed on',
    applies: ({ row, content }) => row === 'posts.item' && content === '{"status":"trash"}',
  },
  {
    reason: 'the address of a menu item is text; WordPress would make text of a number',
    here: 'refused',
    applies: ({ content }) => /^\{"url":[^"n]/.test(content ?? ''),
  },
  {
    reason: 'whether an address is usable the upstream decides',
    here: 'passed on',
    applies: ({ content }) => /^\{"url":"2026-01-01T/.test(content ?? ''),
  },
]

const recordings = answers as unknown as readonly Recorded[]

const name = ({ method, row, query, content }: Recorded): string =>
  `${method} ${row} ${query} ${content ?? ''}`

const exceptionOf = (recorded: Recorded): Exception | undefined =>
  exceptions.find((one) => one.applies(recorded))

const differs = (recorded: Recorded): boolean => {
  const mine = ask(recorded)
  const expected = recorded.answer
  if (mine.kind === 'valid') return expected !== undefined
  return JSON.stringify(mine.body) !== JSON.stringify(expected)
}

describe('recorded requests to WordPress', () => {
  test('include many that WordPress refused', () => {
    expect(recordings.length).toBeGreaterThan(800)
    expect(recordings.filter(({ answer: response }) => response !== undefined).length).toBeGreaterThan(400)
  })

  test('are refused with the same bytes where WordPress refused them, and accepted elsewhere', () => {
    const surprises = recordings.filter(
      (recorded) => exceptionOf(recorded) === undefined && differs(recorded),
    )
    expect(surprises.map(name)).toEqual([])
  })

  test.each(exceptions)('except: $reason', (exception) => {
    const concerned = recordings.filter(
      (recorded) => exceptionOf(recorded) === exception && differs(recorded),
    )
    expect(concerned.length).toBeGreaterThan(0)
    const outcomes = new Set(concerned.map((recorded) => ask(recorded).kind))
    expect([...outcomes]).toEqual([exception.here === 'refused' ? 'invalid' : 'valid'])
  })
})
