/**
 * One write as plain data, in WordPress's names. Texts may hold `{w12}`: the id of what the write named `w12` has created, so that a
 * sequence can be repeated on a fresh copy of the site without some of its writes.
 */
export type Write = { readonly name: string; readonly kind: string } & Sending

export type Operation = {
  readonly method: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path in the interface, and query: `/wp/v2/posts/5?force=true`. */
  readonly route: string
  readonly body?: Readonly<Record<string, unknown>>
}

export const restStyles = [
  'json',
  'form',
  'query',
  'override field',
  'override parameter',
  'fields',
  'rest_route',
] as const
export type RestStyle = (typeof restStyles)[number]

export type HeaderValues = Readonly<Record<string, string>>

export type Sending =
  | {
      readonly door: 'rest'
      readonly style: RestStyle
      readonly operation: Operation
      /** By the user whom the seed has made a subscriber, if it has other rights now; by default the administrator. */
      readonly by?: 'subscriber'
    }
  | { readonly door: 'batch'; readonly operations: readonly Operation[] }
  | { readonly door: 'upload'; readonly route: string; readonly file: string }
  /** A form of wp-admin or of a theme, or a link of wp-admin that writes; `nonces`: names of fields, and the actions they are for. */
  | {
      readonly door: 'form'
      readonly method: 'GET' | 'POST'
      readonly path: string
      readonly headers: HeaderValues
      readonly nonces?: HeaderValues
    }
  | { readonly door: 'xmlrpc'; readonly call: string; readonly values: readonly XmlValue[] }
  /** A POST with this content, of the administrator; as JSON text its references are replaced too. */
  | { readonly door: 'raw'; readonly path: string; readonly type: string; readonly body: string }
  /** Scheduled work, once what `after` has scheduled is due. */
  | { readonly door: 'cron' }

export type XmlValue = string | number | boolean | { readonly [name: string]: XmlValue } | readonly XmlValue[]

/** Ids by the names of the writes that created them. */
export type Created = Map<string, string>

const reference = /\{([a-z]\w*)\}/g

/** Names of the writes on which a value depends. */
export const referencesIn = (value: unknown): string[] =>
  [...JSON.stringify(value).matchAll(reference)].map(([, name = '']) => name)

/** The value with ids in place of references; undefined when one of them is not known. */
export const resolved = <T>(value: T, created: Created): T | undefined => {
  if (referencesIn(value).some((name) => !created.has(name))) return undefined
  const text = JSON.stringify(value).replace(reference, (_, name: string) => created.get(name) ?? '')
  return JSON.parse(text) as T
}
