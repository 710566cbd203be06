import { type Plant, plants } from './plants.ts'

/** Why no read can show that an effect is missing, by names of faults. */
const unobservable: readonly (readonly [names: RegExp, reason: string])[] = [
  [/^contact-forms\./, 'the WordPress of the tests has no Contact Form 7'],
  [/^(?:oembed|search|types|statuses|taxonomies|menu-locations)\./, 'read only: no route writes there'],
  [
    /^(?:categories|tags)\.(?:update|delete)\.(?:categories|tags)\.(?:pages|media|blocks)$/,
    'only with a plugin that gives categories or tags to pages, media or patterns',
  ],
  [
    /^(?:site|wp)_pattern_category\.(?:update|delete)\.(?:site|wp)_pattern_category\.(?:posts|pages|media)$/,
    'only with a plugin that gives categories of patterns to other collections',
  ],
  [/^themes\./, 'read only: no route writes there'],
  [/^plugins\./, 'no read of the fuzzer shows what a plugin adds'],
  [/^(?:settings|sidebars|global-styles)\.(?:create|delete)\./, 'can only be updated'],
]

/** A fault, and what has been seen of it. */
export type Standing = {
  readonly plant: Plant
  readonly unobservable: string | undefined
  /** How many writes the run had sent, and how many of these the fault concerns, when a gateway gave a stale response. */
  found: { readonly writes: number; readonly concerned: number; readonly by: string } | undefined
  /** Writes so far that the fault concerns. */
  concerned: number
  /** Stored responses that only this effect dropped, although WordPress answers as before. */
  needless: number
  /** Stale responses that were computed, but that the gateway did not give. */
  unseen: number
}

export const standingsOf = (only: string): readonly Standing[] =>
  plants
    .filter(({ name }) => name.startsWith(only))
    .map((plant) => ({
      plant,
      unobservable: unobservable.find(([names]) => names.test(plant.name))?.[1],
      found: undefined,
      concerned: 0,
      needless: 0,
      unseen: 0,
    }))

const mostUnseen = 8

/** Is the fault still looked for? */
export const isOpen = ({ found, unobservable, unseen }: Standing): boolean =>
  found === undefined && unobservable === undefined && unseen < mostUnseen

export const wantedReads = ({ name, collection }: Plant): RegExp => {
  const part = name.split('.').at(-1) ?? ''
  const [, property, filtered] =
    /\.(categories|tags|parent|wp_pattern_category)\.(categories|posts|blocks)$/.exec(name) ?? []
  if (filtered !== undefined && !name.includes('.related.')) {
    return new RegExp(`/${filtered}\\?${property}`)
  }
  switch (part) {
    case 'dynamic':
    case 'contents':
    case 'any':
    case 'styled':
      return /^\/wp\/v2\/(?:posts|pages|blocks)/
    case 'shownBy':
      return /^\/wp\/v2\/(?:posts|pages|menu-items)/
    case 'embedded':
      return /_embed/
    case 'siblings':
      return new RegExp(`/${collection}\\b`)
    case 'rights':
      return /\/blocks$|context=edit$/
    case 'everything':
      return /./
    default:
      return name.includes('.filters.')
        ? new RegExp(`/${collection}\\?${part}=`)
        : new RegExp(`[/?]${part.replace('search/term', 'search')}\\b`)
  }
}

/** Members of which a write should change one, so that the effect counts; empty: any. */
export const wantedMembers = ({ name }: Plant): readonly string[] => {
  const [collection = '', kind = '', what = ''] = name.split('.')
  switch (kind) {
    case 'copied':
    case 'related':
    case 'filters':
    case 'hidden':
    case 'argument':
      return what.split('+').map((one) => (one === 'link' ? 'slug' : one))
    case 'searched':
      return ['title', 'content', 'excerpt']
    // Nothing else makes the change of a post more than one of its texts.
    case 'update':
      return ['posts', 'pages'].includes(collection) ? ['status', 'slug', 'date', 'password'] : []
    default:
      return []
  }
}

const inWordPress = (name: string): string => name.replace(/^site_pattern_category/, 'wp_pattern_category')

/** How the names of the writes begin that the fault concerns. */
export const wantedWrites = (plant: Plant): string => {
  const [collection = '', action = ''] = inWordPress(plant.name).split('.')
  if (collection === 'media' && action === 'create') return 'upload'
  if (['create', 'update', 'delete'].includes(action)) return `${collection}.${action}`
  if (action === 'deleted-hidden') return `${collection}.delete`
  if (action === 'rights') return 'users.update.role'
  return ['minor', 'copied', 'searched', 'related', 'hidden', 'argument'].includes(action)
    ? `${collection}.update`
    : `${collection}.`
}

/** Writes to these are the same under both spellings of the names. */
export const twinOf = (name: string): string | undefined =>
  name.startsWith('wp_pattern_category.')
    ? name.replace('wp_pattern_category', 'site_pattern_category')
    : undefined

/** What is known of faults that were not found, by their names. */
const remarks: readonly (readonly [names: RegExp, remark: string])[] = [
  [
    /^comments\.create\.(?:siblings|posts|pages|embedded)$|^media\.create\.(?:posts|pages)$/,
    'counts only where the response does not say to what the item belongs',
  ],
  [
    /\.contents\.any$/,
    'counts only for content that shows no trace of what it renders, which few posts of the run have',
  ],
  [/^site_pattern_category\./, 'the same effects as those of wp_pattern_category, under another spelling'],
  [
    /^(?:pages\.hidden\.slug\.siblings|posts\.hidden\.categories\.categories)$/,
    'seen by hand: without it the link of a page below a draft, and the list of the terms of a draft, were stale',
  ],
  [/\.hidden\./, 'needs a draft with comments, media or pages below it, which few sites of the run have'],
  [/^templates\./, 'lists and look-ups of templates are reached as lists, too'],
]

const remarkFor = (name: string): string => remarks.find(([names]) => names.test(name))?.[1] ?? ''

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${lines.join('\n')}\n`
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').slice(0, 160)

/** A page about all faults, for docs/evidence. */
export const faultsPage = (standings: readonly Standing[], writes: number, seed: number): string => {
  const found = standings.filter((one) => one.found !== undefined)
  const unobservable = standings.filter((one) => one.unobservable !== undefined)
  const missed = standings.filter((one) => one.found === undefined && one.unobservable === undefined)
  const inOrder = found.toSorted((a, b) => (a.found?.writes ?? 0) - (b.found?.writes ?? 0))
  const within = found.filter((one) => (one.found?.writes ?? 0) <= 1000).length
  return [
    '# Planted faults',
    '',
    'Written by `npm run fuzz:promise -- --plant-all`, which removes one effect of a row of the table of effects (`src/contracts/site/tags.ts`, `src/contracts/site/refinements.ts`) at a time and looks for a stale response on a real WordPress. All faults are looked for with the same random writes, most of which are of kinds that concern a fault that has not been found. After each write the functions of the gateway compute which of up to 60 stored responses each fault would keep; where WordPress answers one of these otherwise, the fault is planted, the write is repeated through a gateway on a copy of the database of before, and the fault is found when the gateway gives the old response.',
    '',
    `Seed ${seed}, ${writes} writes: of ${standings.length} faults ${found.length} were found, ${within} of them within 1,000 writes; ${missed.length} were not found, ${unobservable.length} cannot be seen on this site.`,
    '',
    '## Found',
    '',
    'In the second column the writes of the run so far, in the third those of them that concern the fault.',
    '',
    table(
      ['fault', 'writes', 'of its kind', 'the write, and the read that was stale after it'],
      inOrder.map(({ plant, found: how }) => [
        plant.name,
        String(how?.writes),
        String(how?.concerned),
        `\`${cell(how?.by ?? '')}\``,
      ]),
    ),
    '## Not found',
    '',
    'In the second column the writes that concern the fault; in the third the stored responses that nothing but the effect dropped, all of which WordPress answered as before; in the fourth those that were computed to be stale, and were not when the fault was planted.',
    '',
    table(
      ['fault', 'writes', 'dropped without need', 'not confirmed', 'remark'],
      missed.map(({ plant, concerned, needless, unseen }) => [
        plant.name,
        String(concerned),
        String(needless),
        String(unseen),
        remarkFor(plant.name),
      ]),
    ),
    '## Not to be seen on this site',
    '',
    table(
      ['fault', 'why'],
      unobservable.map(({ plant, unobservable: why }) => [plant.name, why ?? '']),
    ),
  ].join('\n')
}
