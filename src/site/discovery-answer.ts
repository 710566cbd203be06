import { contentEntityTag } from '../http/conditional/preconditions.ts'
import { type FieldLines, wordpressJson } from '../http/message.ts'

/** A document ready to be sent with status 200. */
export type DiscoveryDocument = {
  readonly kind: 'document'
  readonly fields: FieldLines
  readonly content: Buffer
}

/** Discovery's response to a request for one of its documents. */
export type SiteIndexAnswer = DiscoveryDocument | { readonly kind: 'identity-unknown' }
export type NamespaceAnswer = DiscoveryDocument | { readonly kind: 'unknown-namespace' }
/** Only the upstream has the schema of its items, which no index contains; without it the fallback lists the arguments. */
export type OptionsAnswer =
  | DiscoveryDocument
  | { readonly kind: 'ask-upstream'; readonly fallback: DiscoveryDocument }

/** Fields as WordPress sends them with its index, and a strong validator, which it does not. */
export const documentOf = (
  value: unknown,
  publicRoot: string,
  methods: readonly string[],
): DiscoveryDocument => {
  const content = Buffer.from(wordpressJson(value), 'latin1')
  const fields = [
    ['Content-Type', 'application/json; charset=UTF-8'],
    ['X-Robots-Tag', 'noindex'],
    ['Link', `<${publicRoot}/>; rel="https://api.w.org/"`],
    ['X-Content-Type-Options', 'nosniff'],
    ['Allow', methods.join(', ')],
    ['ETag', contentEntityTag(content)],
  ]
  return { kind: 'document', fields: fields.flat(), content }
}
