/** The user of the request. */
export type Caller = 'anonymous' | 'admin' | 'editor' | 'author' | 'subscriber'

/** One request, in WordPress's names, to be sent to a WordPress and to gateways in front of it. */
export type RequestCase = {
  readonly method: string
  /** Below the REST root, with its query, as it goes over the wire. */
  readonly target: string
  readonly as: Caller
  readonly headers: Readonly<Record<string, string>>
  readonly content: string | undefined
}

/** What names a case in reports and in the list of exceptions; unique within the table. */
export function titleOf({ as, method, target, headers, content }: RequestCase): string {
  const { 'Content-Type': type = '', ...others } = headers
  const said = [
    as === 'anonymous' ? '' : `(${as})`,
    ...Object.entries(others).map(([name, value]) => `${name}: ${value}`),
    content === undefined ? '' : `${type.replace(/^application\//, '')} ${content.slice(0, 120)}`,
  ]
  return [method, target, ...said.filter((text) => text !== '')].join(' ')
}

/** An anonymous GET, or one by a user. */
export function read(target: string, as: Caller = 'anonymous'): RequestCase {
  return { method: 'GET', target, as, headers: {}, content: undefined }
}

/** The same GET with each of the queries. */
export function reads(path: string, queries: readonly string[], as: Caller = 'anonymous'): RequestCase[] {
  return queries.map((query) => read(`${path}?${query}`, as))
}

/** Any method without content. */
export function ask(method: string, target: string, as: Caller = 'anonymous'): RequestCase {
  return { ...read(target, as), method }
}

/** Its own request with fields. */
export function withHeaders(request: RequestCase, headers: Readonly<Record<string, string>>): RequestCase {
  return { ...request, headers: { ...request.headers, ...headers } }
}

/** Content as text of a type. */
export function withContent(request: RequestCase, type: string, content: string): RequestCase {
  return { ...withHeaders(request, { 'Content-Type': type }), content }
}

/** JSON content; a string is sent as it is. */
export function json(method: string, target: string, content: unknown, as: Caller = 'admin'): RequestCase {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  return withContent(ask(method, target, as), 'application/json', text)
}

/** Form content. */
export function form(method: string, target: string, content: string, as: Caller = 'admin'): RequestCase {
  return withContent(ask(method, target, as), 'application/x-www-form-urlencoded', content)
}

/** The parts of a text between white space: tables of queries are easier to read without quotes. */
export function words(text: string): readonly string[] {
  return text.trim().split(/\s+/)
}
