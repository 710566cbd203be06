import type { Invalid, RequestFault } from '../../service/contract.ts'
import type { ArgumentSchema, Arguments, Row } from '../../service/row.ts'
import { type ApiBundle, below, dereferenced, listOf, member, membersOf } from './bundle.ts'
import type { ApiContract } from './load-document.ts'
import { type Operation, operationOf } from './operation.ts'

/** Parameters of an operation and members of its body, for the document of all services. */
const argumentsOf = (bundle: ApiBundle, { method, template }: Operation): Arguments => {
  const root = { file: bundle.root, path: [], node: bundle.files[bundle.root] }
  const operation = below(root, 'paths', template, method.toLowerCase())
  const parameters = listOf(member(operation.node, 'parameters')).map((parameter, index) => ({
    name: String(member(parameter, 'name')),
    isRequired: member(parameter, 'required') === true,
    schema: below(operation, 'parameters', String(index), 'schema'),
  }))
  const content = below(operation, 'requestBody', 'content', 'application/json', 'schema')
  const body = dereferenced(bundle, content) ?? content
  const members = membersOf(member(body.node, 'properties')).map(([name]) => ({
    name,
    isRequired: listOf(member(body.node, 'required')).includes(name),
    schema: below(body, 'properties', name),
  }))
  return Object.fromEntries(
    [...parameters, ...members].map(({ name, isRequired, schema }) => [
      name,
      { ...(dereferenced(bundle, schema)?.node as ArgumentSchema), ...(isRequired && { required: true }) },
    ]),
  )
}

/** The rows of the document with what the router of contracts and the document of all services need. */
export const plantRows = (bundle: ApiBundle, { rows }: ApiContract): readonly Row[] =>
  rows.map(({ template, endpoints, ...row }) => {
    const kind = template.endsWith('}') ? 'item' : 'collection'
    return {
      ...row,
      id: `plants.${kind}`,
      template,
      pattern: template.replaceAll(/\{(\w+)\}/g, '(?P<$1>[^\\/]+)'),
      collection: 'plants',
      kind,
      endpoints: endpoints.map((endpoint) => ({
        ...endpoint,
        arguments: argumentsOf(bundle, operationOf(endpoint) as Operation),
      })),
    }
  })

/** Code and text for each fault; the first row that fits counts, and the codes are metric labels. */
const refusals: readonly (readonly [fault: RegExp, code: string, text: string])[] = [
  [/ json$|^missing_body/, 'invalid_json', 'The body is not valid JSON.'],
  [/ repeated name$/, 'repeated_member', 'A member of the object occurs more than once.'],
  [/ body\/name$/, 'invalid_name', 'name is required and must be a string.'],
  [/ body\/id$/, 'invalid_id', 'id is required and must be a 64-bit integer in decimal digits.'],
  [/ body\/tag$/, 'invalid_tag', 'tag must be a string.'],
  [/^invalid_body/, 'not_an_object', 'The body must be a JSON object.'],
  [/ path\./, 'invalid_path_id', 'The id in the path must be a 64-bit integer in decimal digits.'],
  [/ query\./, 'invalid_limit', 'The query parameter LIMIT must be one integer of at least 1.'],
  [/^unreadable_query/, 'unreadable_query', 'The query is not UTF-8.'],
  [/^too_many_parameters/, 'too_many_parameters', 'The query has more parameters than allowed.'],
  [/^unsupported/, 'unsupported_content_type', 'The content type must be application/json.'],
]

/** A refusal in the plant store's shape; `error` repeats the status, because the contract has no codes. */
export const plantRefusal =
  (limitParameter: string) =>
  ({ status, code, subject }: RequestFault): Invalid => {
    const [, storeCode = code, text = ''] = refusals.find(([fault]) => fault.test(`${code} ${subject}`)) ?? []
    const message = text.replace('LIMIT', () => limitParameter)
    return { kind: 'invalid', status, code: storeCode, body: { error: status, message } }
  }
