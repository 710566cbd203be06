/** Names of operations that are counted apart; clients invent any number of them. */
const maxNames = 100

/** The label of an operation: its name, as long as there are few. */
export class OperationNames {
  readonly #names = new Set<string>()
  /** Labels of the cache rules: whatever clients send before, these count by themselves. */
  readonly #ofRules: ReadonlySet<string>

  constructor(ofRules: readonly string[]) {
    this.#ofRules = new Set(ofRules)
  }

  /** In the order in which they were seen. */
  get seen(): readonly string[] {
    return [...this.#names]
  }

  labelOf(type: 'query' | 'mutation' | 'subscription', name: string): string {
    const label = name === '' ? type : `${type} ${name}`
    if (this.#names.has(label) || this.#ofRules.has(label)) return label
    if (this.#names.size >= maxNames || name.length > maxNameLength) return `${type} other`
    this.#names.add(label)
    return label
  }
}

const maxNameLength = 64
