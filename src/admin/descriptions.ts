/**
 * How many stored responses of a service the companion describes completely, what keeps it from describing the others so, and the plugins
 * that it was tested with in other versions.
 */
export type Descriptions = {
  readonly service: string
  readonly stored: number
  readonly complete: number
  /** The most frequent first. */
  readonly causes: readonly { readonly cause: string; readonly count: number }[]
  readonly untested: readonly string[]
}

type Described = { readonly service: string; readonly cause: string; readonly count: number }
type Stored = { readonly service: string; readonly count: number }
type Untested = { readonly service: string; readonly plugin: string }

/** Of each service of which something is described; a stored response without any list is not complete either. */
export const descriptionsOf = (
  described: readonly Described[],
  stored: readonly Stored[],
  untested: readonly Untested[] = [],
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
    return {
      service,
      stored: all,
      complete: all - incomplete,
      causes,
      untested: untested.filter((row) => row.service === service).map(({ plugin }) => plugin),
    }
  })

const maxNamed = 5

const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`

const named = (names: readonly string[]): string => {
  const rest = names.length - maxNamed
  return `${names.slice(0, maxNamed).join(', ')}${rest > 0 ? `, and ${rest} more` : ''}`
}

/** For people, without a full stop. */
export const describedText = (descriptions: Descriptions): string => {
  const { untested } = descriptions
  const text = completeText(descriptions)
  return untested.length === 0
    ? text
    : `${text}. Since the gateway started, the site has had plugins in versions that the companion was not tested with (${named(untested)}): a new post or the description of a category drops more than it has to. Update the companion, or see which versions its README names`
}

const completeText = ({ stored, complete, causes }: Descriptions): string =>
  causes.length === 0
    ? `the companion describes all of ${stored} stored responses completely`
    : `the companion describes ${complete} of ${stored} stored responses completely (${percent(complete, stored)}). Each change of anything public drops the others: ${named(causes.map(({ cause, count }) => `${cause} (${count})`))}`
