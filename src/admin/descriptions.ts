/** How many stored responses of a service the companion describes completely, and what keeps it from describing the others so. */
export type Descriptions = {
  readonly service: string
  readonly stored: number
  readonly complete: number
  /** The most frequent first. */
  readonly causes: readonly { readonly cause: string; readonly count: number }[]
}

type Described = { readonly service: string; readonly cause: string; readonly count: number }
type Stored = { readonly service: string; readonly count: number }

/** Of each service of which something is described; a stored response without any list is not complete either. */
export const descriptionsOf = (
  described: readonly Described[],
  stored: readonly Stored[],
): readonly Descriptions[] =>
  [...new Set(described.map(({ service }) => service))].map((service) => {
    const own = described.filter((row) => row.service === service && row.count > 0)
    const listed = own.reduce((sum, { count }) => sum + count, 0)
    const all = Math.max(listed, stored.find((row) => row.service === service)?.count ?? 0)
    const causes = own.filter(({ cause }) => cause !== '').map(({ cause, count }) => ({ cause, count }))
    if (all > listed)
      causes.push({ cause: 'responses that the companion does not describe', count: all - listed })
    causes.sort((first, second) => second.count - first.count)
    const incomplete = causes.reduce((sum, { count }) => sum + count, 0)
    return { service, stored: all, complete: all - incomplete, causes }
  })

const maxCauses = 5

const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`

/** One sentence for people, without its full stop. */
export const describedText = ({ stored, complete, causes }: Descriptions): string => {
  if (causes.length === 0) return `the companion describes all of ${stored} stored responses completely`
  const rest = causes.length - maxCauses
  const named = causes.slice(0, maxCauses).map(({ cause, count }) => `${cause} (${count})`)
  return `the companion describes ${complete} of ${stored} stored responses completely (${percent(complete, stored)}). Each change of anything public drops the others: ${named.join(', ')}${rest > 0 ? `, and ${rest} more` : ''}`
}
