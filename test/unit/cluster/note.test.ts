import { expect, test } from 'vitest'
import { decodeNote, encodeNote, type Note } from '../../../src/cache/invalidation.ts'

const everything: Note = { kind: 'all', mode: 'hard' }

test.each<readonly [Note]>([
  [{ kind: 'tag', tag: 'site:post:1', mode: 'hard' }],
  [{ kind: 'tag', tag: '', mode: 'soft' }],
  [{ kind: 'hold', tag: 'a:b', forMs: 30_000 }],
  [{ kind: 'hold', tag: 'a:b', forMs: 0.5 }],
  [{ kind: 'prefix', service: 'site', prefix: '/a:b', mode: 'hard' }],
  [{ kind: 'prefix', service: 'site', prefix: '', mode: 'soft' }],
  [{ kind: 'all', mode: 'soft' }],
  [everything],
  [{ kind: 'documents', service: 'site', collection: '' }],
])('%j is read as it was written', (note) => {
  expect(decodeNote(encodeNote(note))).toEqual(note)
})

test.each([
  '',
  ':',
  't',
  'tag:x',
  'x:y',
  'h:x',
  'hx:x',
  'h-1:x',
  'hNaN:x',
  'hInfinity:x',
  'p:site',
  'q',
  'd:site',
  'bb:',
])('what is no note may mean anything: %j', (text) => {
  expect(decodeNote(text)).toEqual(everything)
})
