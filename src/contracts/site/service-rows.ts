import type { Row } from '../row.ts'
import { embedProxyQuery, embedQuery } from './action-bodies.ts'
import {
  type Collection,
  collectionRow,
  deletes,
  integer,
  posts,
  reads,
  row,
  updates,
} from './row-builders.ts'

/** Index of a namespace. `namespace` and `context` are announced without a type: any value passes. */
export const namespaceIndex = (id: string, namespace: string): Row =>
  row({
    id,
    template: `/${namespace}`,
    namespace,
    kind: 'index',
    handledBy: 'discovery',
    endpoints: [reads({ namespace: { default: namespace }, context: { default: 'view' } })],
  })

const lookup = { namespace: 'oembed/1.0', kind: 'lookup' } as const

/** Embed lookup. */
export const oembedRows: readonly Row[] = [
  namespaceIndex('oembed.index', 'oembed/1.0'),
  row({ id: 'oembed.embed', template: '/oembed/1.0/embed', ...lookup, endpoints: [reads(embedQuery)] }),
  row({ id: 'oembed.proxy', template: '/oembed/1.0/proxy', ...lookup, endpoints: [reads(embedProxyQuery)] }),
]

const forms: Collection = {
  name: 'contact-forms',
  namespace: 'contact-form/v1',
  identifier: '\\d+',
  identifierSchema: integer,
  marks: {},
}
const form = { name: 'id', pattern: forms.identifier }

/** Browsers send forms as multipart, perhaps with files. */
const uploads = { acceptsUploads: true } as const

const formRows: readonly Row[] = [
  namespaceIndex('contact-form.index', forms.namespace),
  collectionRow(forms, 'collection', 'collection', [], [reads({}), posts({}, uploads)]),
  collectionRow(forms, 'item', 'item', [form], [reads({}), updates({}, uploads), deletes({})]),
  collectionRow(forms, 'action', 'feedback', [form, 'feedback'], [posts({}, uploads)]),
  collectionRow(forms, 'related', 'feedback-schema', [form, 'feedback', 'schema'], [reads({})]),
  collectionRow(forms, 'related', 'refill', [form, 'refill'], [reads({})]),
]

/** Contact forms. Their arguments are not announced: all parameters are forwarded. */
export const contactFormRows: readonly Row[] = formRows.map((one) => ({ ...one, ofPlugin: true }))
