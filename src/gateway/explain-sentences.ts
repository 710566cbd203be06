import type { RequestHeaders } from '../http/headers/header-lines.ts'

/** The request to explain; it is not sent. */
export type ExplainedRequest = {
  readonly method: string
  /** URL, or path and query, on the public side. */
  readonly target: string
  /** Lower-case names. */
  readonly headers: RequestHeaders
  /** Absent: the request has none, or it is not part of what is explained. */
  readonly content?: Buffer | undefined
}

/** What would happen, aspect by aspect, in the order in which it is decided. */
export type Explanation = Readonly<Record<string, unknown>>

const listText = (values: readonly string[], max: number): string => {
  const more = values.length - max
  return `${values.slice(0, max).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : [])

const why = 'docs/why-not-cached.md says what you can do'

/** What the cache does with the request. */
const cacheSentences = (explanation: Explanation): readonly string[] => {
  const { cache, rule } = explanation
  const [, kind = '', detail = ''] = /^(read|bypass|write)[:,] ?(.*)$/.exec(String(cache ?? '')) ?? []
  switch (kind) {
    case 'read': {
      const forWhom =
        detail === 'public'
          ? 'for all clients together'
          : 'for each credential, so that no other client gets it'
      const lifetime =
        rule === 'none' ? 'No rule gives it a lifetime: the upstream may.' : `Its rule says: ${rule}.`
      return [`It is a read. Its response comes from the cache, and is stored ${forWhom}.`, lifetime]
    }
    case 'bypass': {
      const cookies = texts(explanation['cookiesThatMayChangeTheAnswer'])
      const cookieNames = cookies.length === 0 ? '' : `, for ${listText(cookies, 3)}`
      return [
        `It goes to the upstream each time, and nothing is stored. The reason is ${detail}${cookieNames}; ${why}.`,
      ]
    }
    case 'write': {
      const tags = texts(explanation['mayInvalidate'])
      return [
        tags.length === 0
          ? 'It is a write. What it and its response name is invalidated before the client gets the response.'
          : `It is a write. Before the client gets the response, stored responses of these are invalidated: ${listText(tags, 3)}.`,
      ]
    }
    default:
      return []
  }
}

const ended = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

/** What happens to a request, as a person would say it. */
export const explanationSentences = (
  { method, target }: Pick<ExplainedRequest, 'method' | 'target'>,
  explanation: Explanation,
): readonly string[] => {
  const { service, row, refused, answer: response, canonicalTarget, access } = explanation
  const requestText = `${method} ${target}`
  if (service === undefined)
    return refused === undefined ? [] : [ended(`${requestText} is refused: ${refused}`)]
  const route =
    row === undefined || row === '/**'
      ? ''
      : row === 'unlisted'
        ? ', whose routes do not list it'
        : `, route ${row}`
  return [
    `${requestText} is for the service ${service}${route}.`,
    ...(refused === undefined
      ? []
      : [ended(`It is refused: ${refused === '404' ? '404, no route has this path' : refused}`)]),
    ...(access === undefined ? [] : [ended(`Its credentials: ${access}`)]),
    ...(response === undefined ? [] : [ended(`It is answered: ${response}`)]),
    ...(canonicalTarget === undefined || target.endsWith(String(canonicalTarget))
      ? []
      : [`The upstream and the cache see ${canonicalTarget}.`]),
    ...cacheSentences(explanation),
  ]
}
