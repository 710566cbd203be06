import type { Found } from '../contracts/finding.ts'
import type { FieldLines } from '../http/fields.ts'

/** Typed arguments of a request, as the validator filled them in. */
export type TaggedArguments = Readonly<Record<string, unknown>>

/** A complete response that is about to be kept. */
export type TaggedResponse = {
  readonly status: number
  readonly fields: FieldLines
  readonly content: Buffer
}

/** What came back from a write; `content` undefined where it was streamed on unread. */
export type WriteResponse = {
  readonly status: number
  readonly fields: FieldLines
  readonly content: Buffer | undefined
}

/** Names what a stored response shows and what a write can have changed. Pure; throws on no input. */
export type Tagger = {
  /** `found` undefined: a path that no row lists. */
  storedTags(found: Found | undefined, args: TaggedArguments, response: TaggedResponse): readonly string[]
  /** Carried besides by what is kept for one caller alone; undefined where no write changes what a caller may see. */
  readonly callers: string | undefined
  /**
   * Carried besides by answers to requests with parameters that the row does not declare: by those a plugin may show anything, so
   * every write reaches them. undefined where every write reaches every answer.
   */
  readonly undeclared: string | undefined
  /** Could a row have given this? What could not is not kept for other readers. */
  isReadable(response: TaggedResponse): boolean
  /**
   * `response` undefined: the outcome is unknown, and then everything that may have changed counts as changed.
   * `shown`: contents that carry a tag and show the state right before the write; without it that state is unknown.
   */
  writtenTags(
    found: Found | undefined,
    given: Given,
    method: string,
    response: WriteResponse | undefined,
    shown?: Shown,
  ): readonly string[]
}

/** Names of the arguments to which a write gives a value; undefined when not all of them are known. */
export type Given = () => readonly string[] | undefined

/** Contents of stored responses that carry a tag, some of them if there are many. */
export type Shown = (tag: string) => readonly Buffer[]
