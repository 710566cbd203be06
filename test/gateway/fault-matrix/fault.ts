import type { Script } from '../../support/origin.ts'

/** What is asked of a gateway while the fault lasts, in this order; a stored response is read before and after all of it. */
export const asked = ['miss', 'write', 'batch', 'pass', 'upload'] as const

export type Asked = (typeof asked)[number]

/**
 * What a client sees, one for each of `asked`: a status; `cut` when the connection ends before the response is complete;
 * both when the head came and the content did not. `200|502`: either, since it depends on which connection is free.
 * For the batch it is the status of its two items.
 */
export type Seen = readonly [miss: string, write: string, batch: string, pass: string, upload: string]

/** How the upstream fails. `script` answers requests; everything else happens below HTTP and is arranged by stage.ts. */
export type Trouble =
  | { readonly kind: 'script'; readonly script: Script; readonly early?: boolean }
  | { readonly kind: 'refused' | 'dropped' | 'stopped' | 'accept-reset' | 'accept-close' | 'accept-silent' }
  | { readonly kind: 'name-unknown' | 'name-silent' }
  | {
      readonly kind: 'tls'
      readonly server: 'expired' | 'wrong-name' | 'other-ca' | 'old-version' | 'plain' | 'silent'
    }

export type Fault = {
  /** What the upstream does, as the row is named in the document. */
  readonly name: string
  readonly trouble: Trouble
  readonly seen: Seen
  /** Why the row is as it is, where that is not plain. */
  readonly note?: string
}

/** A fault that plays in the response to a request. */
export const scripted = (name: string, script: Script, seen: Seen, invalidation?: string): Fault => ({
  name,
  trouble: { kind: 'script', script },
  seen,
  ...(invalidation === undefined ? {} : { note: invalidation }),
})

/** Status line and headers, with the empty line. */
export const headOf = (headers: string, status = 200): string =>
  `HTTP/1.1 ${status} Scripted\r\n${headers === '' ? '' : `${headers}\r\n`}\r\n`

const all = (one: string): Seen => [one, one, one, one, one]

/** The upstream could not be reached or broke off before its head: a 502 for all. */
export const badGateway = all('502')
/** Nothing came in time: a 504 for all. */
export const gatewayTimeout = all('504')
/** The response is good, or none of the gateway's business, and passes. */
export const passes = (status: number): Seen => all(String(status))
