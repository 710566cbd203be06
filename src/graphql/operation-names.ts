/** Names of operations that are counted apart; clients invent any number of them. */
const maxNames = 100

/** The label of an operation: its name, as long as there are few. */
export class OperationNames {
  readonly #names = new Set<string>()

  /** In the order in which they were seen. */
  get seen(): readonly string[] {
    return [...this.#names]
  }

  labelOf(type: 'query' | 'mutation' | 'subscription', name: string): string {
    const label = name === '' ? type : `${type} ${name}`
    if (this.#names.has(label)) return label
    if (this.#names.size >= maxNames || name.length > maxNameLength) return `${type} other`
    this.#names.add(label)
    return label
  }
}

const maxNameLength = 64
