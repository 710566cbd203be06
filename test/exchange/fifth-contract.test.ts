import { expect, test } from 'vitest'
import { createTagNames } from '../../src/cache/tag-names.ts'
import { GatewayError } from '../../src/errors.ts'
import { match } from '../../src/exchange/admit/match.ts'
import { validate } from '../../src/exchange/admit/validate.ts'
import { errorResponse } from '../../src/exchange/error-response.ts'
import type { ValidatedContext } from '../../src/exchange/request-context.ts'
import { unlimited } from '../../src/http/bounds/byte-budget.ts'
import { type Contract, planByMediaType } from '../../src/service/contract.ts'
import { createOpenContract } from '../../src/service/open.ts'
import { errorText, plainShape } from '../../src/service/problem.ts'
import { createRouter, createRowsInUse } from '../../src/service/router.ts'
import type { Row } from '../../src/service/row.ts'
import type { Tagger } from '../../src/service/tagger.ts'
import { received, siteService } from './exchange-of.ts'

// A contract that Trellis does not have, as an exercise: a JSON service with notes. All that the gateway needs of it is here.

const noteRow = (kind: 'collection' | 'item', template: string, pattern: string): Row => ({
  id: `notes.${kind}`,
  template,
  pattern,
  namespace: '',
  collection: 'notes',
  kind,
  handledBy: 'upstream',
  endpoints: [
    { methods: ['GET'], arguments: {} },
    { methods: kind === 'item' ? ['PUT', 'DELETE'] : ['POST'], arguments: {} },
  ],
})

const rows = [
  noteRow('collection', '/notes', '/notes'),
  noteRow('item', '/notes/{id}', '/notes/(?P<id>[\\d]+)'),
]

/** A write to a note changes what shows it, and the list. */
const createNotesTagger = (service: string): Tagger => {
  const names = createTagNames(service)
  const item = (id: string | undefined) => [names.item('notes', id ?? '') ?? names.any('notes')]
  return {
    storedTags: (found) => [
      names.all,
      ...(found?.row.kind === 'item' ? item(found.pathParameters['id']) : [names.list('notes')]),
    ],
    callers: undefined,
    undeclared: undefined,
    readability: () => 'readable',
    writtenTags: (found, _given, _method, written) => {
      if (written === undefined) return [names.all]
      if (written.status >= 400) return []
      return [names.list('notes'), ...(found?.row.kind === 'item' ? item(found.pathParameters['id']) : [])]
    },
    everything: names.all,
    changedTags: () => undefined,
  }
}

const createNotesContract = (service: string): Contract => ({
  ...createOpenContract(
    { name: service, cache: { rules: [] } as never },
    {
      limits: { queryParameters: 64 },
      policyFor: () => ({ profile: 'safe', rule: undefined }),
      uncacheableReasonOf: () => undefined,
      actsAsWrite: () => false,
    },
  ),
  rows,
  registered: rows,
  ...createRowsInUse(createRouter(rows).find),
  unlisted: 'refuse',
  hasRoutes: true,
  options: 'refused',
  contentPlan: planByMediaType,
  tagger: createNotesTagger(service),
  errors: plainShape('application/json', (error) => ({ fault: errorText(error) })),
})

const contract = createNotesContract('notes')
const service = siteService({ name: 'notes', contract })

const readyFor = (method: string, target: string): ValidatedContext => {
  const ready = validate(match(received(target, { method }, service)), unlimited, () => {})
  if (ready instanceof Promise || 'response' in ready) throw new TypeError('the request was refused')
  return ready
}

const tagsOf = ({ matching }: ValidatedContext) =>
  contract.tagger.storedTags(
    matching.kind === 'found' ? matching : undefined,
    {},
    {
      status: 200,
      headers: [],
      content: Buffer.from('{}'),
    },
  )

test('its routes are matched, in one spelling', () => {
  const { target, matching } = readyFor('GET', '//notes/7')
  expect([target, 'row' in matching && matching.row.id]).toEqual(['/notes/7', 'notes.item'])
})

test.each([
  ['PUT', '/notes/7', ['notes/list/notes', 'notes/item/notes/7']],
  ['POST', '/notes', ['notes/list/notes']],
])('%s %s reaches the list, and the note that it names', (method, target, reached) => {
  const { matching } = readyFor(method, target)
  const found = matching.kind === 'found' ? matching : undefined
  const written = { status: 200, headers: [], content: undefined }
  expect(contract.tagger.writtenTags(found, () => undefined, method, written)).toEqual(reached)
  expect(tagsOf(readyFor('GET', '/notes/7')).some((tag) => reached.includes(tag))).toBe(method === 'PUT')
  expect(tagsOf(readyFor('GET', '/notes')).some((tag) => reached.includes(tag))).toBe(true)
})

test.each([
  ['GET', '/elsewhere', 404],
  ['DELETE', '/notes', 405],
])('%s %s is refused with %i in its shape', (method, target, status) => {
  const thrown = (() => {
    try {
      readyFor(method, target)
    } catch (error) {
      return error as GatewayError
    }
    return undefined
  })()
  expect(thrown).toBeInstanceOf(GatewayError)
  const response = errorResponse(service, thrown as GatewayError, { headers: {}, id: '' })
  expect([response.status, Object.keys(JSON.parse(String(response.content)))]).toEqual([status, ['fault']])
})
