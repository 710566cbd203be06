import { type Plant, plantFault, plants } from './plants.ts'
import { runFuzz } from './run.ts'
import type { FuzzedSites } from './site-under-fuzz.ts'

/** Why no read can show that an effect is missing, by names of faults. */
const unobservable: readonly (readonly [names: RegExp, reason: string])[] = [
  [/^contact-forms\./, 'the WordPress of the tests has no Contact Form 7'],
  [/^site_pattern_category\./, 'the spelling of a site that is no WordPress'],
  [/^(?:oembed|search|types|statuses|taxonomies|menu-locations)\./, 'read only: nothing is written there'],
  [/^(?:themes|plugins)\./, 'no write of the fuzzer: themes and plugins stay as they are'],
  [/^global-styles\./, 'no write of the fuzzer: the theme keeps its styles'],
  [/^(?:sidebars)\./, 'the theme has no sidebars'],
  [/^settings\.(?:create|delete)\./, 'settings can only be updated'],
  [/^(?:templates|template-parts)\.create\./, 'the fuzzer updates those of the theme, which creates them'],
  [/\.oembed$/, 'the fuzzer reads no oEmbed answers: they show what the post shows, by its address'],
]

const reasonOf = (name: string): string | undefined => unobservable.find(([names]) => names.test(name))?.[1]

const wantedReads = ({ name, collection }: Plant): RegExp => {
  const part = name.split('.').at(-1) ?? ''
  switch (part) {
    case 'dynamic':
    case 'contents':
    case 'any':
      return /^\/wp\/v2\/(?:posts|pages|blocks)/
    case 'shownBy':
      return /^\/wp\/v2\/(?:posts|pages)/
    case 'embedded':
      return /_embed/
    case 'siblings':
      return new RegExp(`/${collection}\\b`)
    case 'everything':
    case 'rights':
      return /./
    default:
      return name.includes('.filters.') ? new RegExp(`/${collection}\\?${part}=`) : new RegExp(`/${part}\\b`)
  }
}

const wantedWrites = ({ name, collection }: Plant): string => {
  const [, action = ''] = name.split('.')
  return ['create', 'update', 'delete'].includes(action) ? `${collection}.${action}` : `${collection}.`
}

/** Plants one fault after the other and tells after how many writes each is found. */
export const plantAll = async (
  sites: FuzzedSites,
  options: {
    readonly writes: number
    readonly seed: number
    readonly answersPerWrite: number
    /** Only faults whose names begin so. */
    readonly only: string
    tell(line: string): void
  },
): Promise<readonly string[]> => {
  const missed: string[] = []
  for (const plant of plants.filter(({ name }) => name.startsWith(options.only))) {
    const { name } = plant
    const reason = reasonOf(name)
    if (reason !== undefined) {
      options.tell(`${name.padEnd(40)} not to be seen: ${reason}`)
      continue
    }
    const remove = plantFault(plant)
    try {
      const { foundAfter, seen } = await runFuzz(sites, {
        ...options,
        focus: wantedWrites(plant),
        readFocus: wantedReads(plant),
        firstOnly: true,
        shrinks: false,
        tell: () => {},
      })
      if (foundAfter === undefined) missed.push(name)
      options.tell(
        `${name.padEnd(40)} ${foundAfter === undefined ? `not found in ${seen.writes} writes` : `found after ${foundAfter} writes`}`,
      )
    } finally {
      remove()
    }
  }
  return missed
}
