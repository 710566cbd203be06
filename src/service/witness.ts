/**
 * What the companion of a site states about a request: it wrote `nothing`, only what its `own` user is shown, or `rows` of the log
 * of changes (incarnation, sequence and check value).
 */
export type Statement =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'own' }
  | { readonly kind: 'rows'; readonly rows: readonly string[] }

/** A question that goes with one request. */
export type Question = {
  /** Of the witness. */
  readonly key: string
  /** Value of the field Trellis-Nonce. */
  readonly field: string
  /** The statement in the field Trellis-Statement; undefined when it is missing, or does not belong to this request. */
  read(value: string | undefined): Statement | undefined
}

/** The companion of a service. */
export type Witness = {
  /** The same for services that have the same token. */
  readonly key: string
  /** Undefined while changes may be unknown. */
  ask(): Question | undefined
  /** Have the changes of these rows been dropped in all processes? */
  hasApplied(rows: readonly string[]): boolean
}

/** A statement, with the key of the witness that made it. */
export type Said = Statement & Pick<Witness, 'key'>

/** What a content must be; `any`: it is not read. */
type ContentRule = { readonly mostBytes: number; readonly isRight: (content: Buffer) => boolean }

/** Says of requests that they change nothing that a cached reader is shown. */
export type HarmlessClaim = {
  /** From the configuration, or from the table of a contract. */
  readonly by: 'harmless' | 'table'
  /** The pattern, or the name in the table and the reason. */
  readonly text: string
  /** By the media type, without parameters. Undefined: with such a content it is a write. */
  contentRule(mediaType: string): ContentRule | 'any' | undefined
  /** What must hold of the answer too; undefined: nothing. */
  readonly shownBy?: ((status: number, setCookies: readonly string[]) => boolean) | undefined
}
