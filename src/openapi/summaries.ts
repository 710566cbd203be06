import type { Method, Row, RowKind } from '../contracts/row.ts'

type Words = Partial<Record<Method, string>>

const update = { POST: 'Update', PUT: 'Update', PATCH: 'Update' } as const
const each: Words = { ...update, GET: 'Read', DELETE: 'Delete' }

/** What a method does to a resource of that kind; `*` stands for the collection. */
const summaries: Readonly<Record<RowKind, readonly [words: Words, object: string]>> = {
  index: [{ GET: 'Read' }, 'the index'],
  batch: [{ POST: 'Send' }, 'several requests at once'],
  collection: [{ ...each, GET: 'List', POST: 'Create in' }, '*'],
  item: [each, 'one of *'],
  revisions: [{ GET: 'List' }, 'the revisions of one of *'],
  revision: [each, 'a revision of one of *'],
  autosaves: [{ GET: 'List', POST: 'Create' }, 'autosaves of one of *'],
  autosave: [each, 'an autosave of one of *'],
  lookup: [{ GET: 'Look up' }, '*'],
  action: [{ POST: 'Act on' }, '*'],
  related: [each, 'what belongs to *'],
}

/** One line for a list of operations. */
export const summaryOf = (row: Row, method: Method): string => {
  const [words, object] = summaries[row.kind]
  const subject = row.collection === '' ? row.template : row.collection
  return `${words[method] ?? method} ${object.replace('*', subject)}`
}
