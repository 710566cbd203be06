import { expect, test } from 'vitest'
import { hintLines } from '../../../src/cli/commands/hint-lines.ts'

const notes = (...texts: readonly string[]) => texts.map((text) => ({ service: 'pets', text }))

test('notes that say the same of many operations are one line', () => {
  const unseen = (path: string, line: number) =>
    `api.yaml:${line}:5 GET ${path} takes a credential that is not described: its responses are not stored`
  expect(
    hintLines(
      notes(
        unseen('/a', 1),
        'POST /b: bodies of text/csv are checked by size only',
        unseen('/c', 2),
        unseen('/d/{id}', 3),
        unseen('/e', 4),
      ),
      'trellis.yaml',
    ),
  ).toBe(`trellis.yaml: document of pets: of 4 operations each takes a credential that is not described: its responses are not stored (GET /a, GET /c, GET /d/{id}, ...; --json prints all)
trellis.yaml: document of pets: POST /b: bodies of text/csv are checked by size only
`)
})

test('few notes of a kind stay as they are', () => {
  const texts = ['GET /a: a schema is not checked: x', 'GET /b: a schema is not checked: x']
  expect(hintLines(notes(...texts), 'f')).toBe(texts.map((text) => `f: document of pets: ${text}\n`).join(''))
})
