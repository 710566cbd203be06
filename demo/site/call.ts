import type { RequestHeaders } from '../../src/http/headers/header-lines.ts'
import type { Row } from '../../src/service/row.ts'
import type { Caller } from './caller.ts'
import type { DialectNames } from './dialect-names.ts'
import type { Store } from './store.ts'

/** WordPress's `context`: which fields an item shows. */
export type Context = 'view' | 'embed' | 'edit'

/** What all resources share. */
export type Site = {
  /** Address in links to pages, without a trailing slash. */
  readonly home: string
  /** REST root in links, without a trailing slash. */
  readonly root: string
  readonly names: DialectNames
  readonly rows: readonly Row[]
  readonly store: Store
  now(): number
}

/** Typed arguments of a call, defaults filled in. */
export type Values = Readonly<Record<string, unknown>>

/** One request whose row is known and whose arguments are valid. */
export type Call = {
  readonly site: Site
  readonly method: string
  readonly row: Row
  readonly caller: Caller
  readonly args: Values
  /** Named parts of the path, decoded. */
  readonly path: Readonly<Record<string, string>>
  /** Raw query without `?`. */
  readonly query: string
  readonly fields: RequestHeaders
  readonly content: Buffer
}

/** What a resource answers; `body` is written as JSON unless it is a string with its own Content-Type. */
export type SiteResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/** A part of the site: who may do what, and doing it. */
export type Resource = {
  /** Throws a SiteFault when the caller may not; also asked with the row's other methods to build `Allow`. */
  permit(call: Call): void
  /** Checks of arguments that come before the rights; throws a SiteFault. */
  check?(call: Call): void
  run(call: Call): SiteResponse
}

/** A response with status 200 without additional headers. */
export const ok = (body: unknown, headers: Readonly<Record<string, string>> = {}): SiteResponse => ({
  status: 200,
  headers,
  body,
})

/** The context asked for; anything unknown is `view`. */
export const contextOf = (call: Call): Context => {
  const context = call.args['context']
  return context === 'edit' || context === 'embed' ? context : 'view'
}
