import {
  type DocumentNode,
  type FragmentDefinitionNode,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'

/** Bounds of documents: `graphql` of the configuration of a service. */
export type DocumentLimits = {
  readonly maxDepth: number
  readonly maxAliases: number
  readonly maxTokens: number
  readonly maxBytes: number
  readonly introspection: boolean
}

/** Why a document is refused; a closed list, because the codes are metric labels. */
export const limitCodes = [
  'document_too_large',
  'too_many_tokens',
  'document_too_deep',
  'too_many_aliases',
  'introspection_refused',
  'batch_too_long',
] as const
export type LimitCode = (typeof limitCodes)[number]

export type RefusedDocument = {
  readonly kind: 'refused'
  readonly code: LimitCode
  readonly message: string
}

export const refusedDocument = (code: LimitCode, message: string): RefusedDocument => ({
  kind: 'refused',
  code,
  message,
})

/** Inline fragments nest selections without adding a level to the response. */
const nestingsPerLevel = 4

type Measures = { readonly depth: number; readonly aliases: number; readonly introspects: boolean }

const nothing: Measures = { depth: 0, aliases: 0, introspects: false }
const endless: Measures = { depth: Number.POSITIVE_INFINITY, aliases: 0, introspects: false }

const joined = (one: Measures, other: Measures): Measures => ({
  depth: Math.max(one.depth, other.depth),
  aliases: one.aliases + other.aliases,
  introspects: one.introspects || other.introspects,
})

const introspecting: ReadonlySet<string> = new Set(['__schema', '__type'])

/** Measures selections with fragments in their places. Each fragment is measured once, so that the work is linear in the document. */
class Measurement {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>
  readonly #maxNesting: number
  /** `undefined` while a fragment is being measured: it spreads itself. */
  readonly #measured = new Map<string, Measures | undefined>()

  constructor({ definitions }: DocumentNode, maxNesting: number) {
    this.#maxNesting = maxNesting
    this.#fragments = new Map(
      definitions.flatMap((definition) =>
        definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
      ),
    )
  }

  of({ selections }: SelectionSetNode, nesting = 0): Measures {
    if (nesting > this.#maxNesting) return endless
    return selections.map((selection) => this.#ofSelection(selection, nesting)).reduce(joined, nothing)
  }

  #ofSelection(selection: SelectionNode, nesting: number): Measures {
    switch (selection.kind) {
      case Kind.FRAGMENT_SPREAD:
        return this.#ofFragment(selection.name.value)
      case Kind.INLINE_FRAGMENT:
        return this.of(selection.selectionSet, nesting + 1)
      case Kind.FIELD: {
        const { alias, name, selectionSet } = selection
        const inner = selectionSet === undefined ? nothing : this.of(selectionSet, nesting + 1)
        return {
          depth: inner.depth + 1,
          aliases: inner.aliases + (alias === undefined ? 0 : 1),
          introspects: inner.introspects || introspecting.has(name.value),
        }
      }
    }
  }

  /** Also of fragments that nothing spreads, since upstreams read these too. */
  ofAll({ definitions }: DocumentNode): Measures {
    return definitions.reduce<Measures>((max, definition) => {
      if (definition.kind === Kind.FRAGMENT_DEFINITION)
        return joined(max, { ...this.#ofFragment(definition.name.value), aliases: 0 })
      return definition.kind === Kind.OPERATION_DEFINITION
        ? joined(max, this.of(definition.selectionSet))
        : max
    }, nothing)
  }

  #ofFragment(name: string): Measures {
    const fragment = this.#fragments.get(name)
    if (fragment === undefined) return nothing
    if (this.#measured.has(name)) return this.#measured.get(name) ?? endless
    this.#measured.set(name, undefined)
    const measures = this.of(fragment.selectionSet)
    this.#measured.set(name, measures)
    return measures
  }
}

/** The bound that a document exceeds; undefined when it keeps within all of them. A fragment that spreads itself has no end. */
export const excessOf = (document: DocumentNode, limits: DocumentLimits): RefusedDocument | undefined => {
  const { maxDepth, maxAliases, introspection } = limits
  const { depth, aliases, introspects } = new Measurement(document, nestingsPerLevel * maxDepth).ofAll(
    document,
  )
  if (depth > maxDepth)
    return refusedDocument('document_too_deep', `Fields may be nested at most ${maxDepth} levels deep.`)
  if (aliases > maxAliases)
    return refusedDocument('too_many_aliases', `A document may have ${maxAliases} aliases.`)
  return introspects && !introspection
    ? refusedDocument('introspection_refused', 'Introspection is switched off.')
    : undefined
}
