import { mayHaveRights } from '../http/credential-fields.ts'
import { asciiJson, type RequestFields } from '../http/message.ts'
import type { ErrorShape, RefusedRequest } from '../service/contract.ts'
import { errorText } from '../service/problem.ts'

const json = 'application/json; charset=UTF-8'

/** What WordPress sends with every response of its interface. */
const interfaceFields = (publicRoot: string): string[] => [
  ...['X-Robots-Tag', 'noindex'],
  ...['Link', `<${publicRoot}/>; rel="https://api.w.org/"`],
]

/** Lists that WordPress shows to anonymous clients, unless a parameter asks for private data. */
const publicLists: ReadonlySet<string> = new Set(['posts', 'pages', 'media', 'blocks', 'categories', 'tags'])
/** `_envelope` moves what is here into the content. */
const asksForMore = /context|post|_envelope/i

/** The methods that the client may use, as far as they follow from the route and the credential's presence. */
const allowedTo = ({ row, query, fields }: RefusedRequest): string | undefined => {
  if (row.kind === 'batch') return 'POST'
  const isPublic = row.kind === 'collection' && publicLists.has(row.collection)
  return isPublic && !mayHaveRights(fields) && !asksForMore.test(query) ? 'GET' : undefined
}

/** WordPress sends these to logged-in users; any credential is taken for one of those. */
const callerFields = (fields: RequestFields): string[] =>
  mayHaveRights(fields)
    ? [
        ...['Expires', 'Wed, 11 Jan 1984 05:00:00 GMT'],
        ...['Cache-Control', 'no-cache, must-revalidate, max-age=0, no-store, private'],
      ]
    : []

/** Errors as WordPress writes them. */
export const siteShape: ErrorShape = {
  contentType: json,
  body: (error) => ({
    code: error.facts.siteCode ?? `trellis_${error.code}`,
    message: errorText(error),
    data: { status: error.facts.status },
  }),
  text: asciiJson,
  fields: interfaceFields,
  refusal: (refused, { code }) => {
    const general = [...interfaceFields(refused.publicRoot), 'X-Content-Type-Options', 'nosniff']
    // WordPress makes this check first, and answers as a script.
    if (code === 'rest_callback_invalid')
      return { contentType: 'application/javascript; charset=UTF-8', fields: general }
    const allow = allowedTo(refused)
    const fields = [
      ...general,
      ...(allow === undefined ? [] : ['Allow', allow]),
      ...callerFields(refused.fields),
    ]
    return { contentType: json, fields }
  },
  itemBody: (_status, body) => body,
  batchFields: callerFields,
}
