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
