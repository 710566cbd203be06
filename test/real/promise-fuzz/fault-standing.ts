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
    /^categories\.(?:update|delete)\.(?:shownBy|categories\.posts)$/,
    'posts, media and menu items are reached as a whole; the rest shows only with a plugin that gives categories to pages',
  ],
  [
    /^categories\.delete\.(?:blocks|navigation)$/,
    'the links of patterns and navigations hold the default category, which WordPress does not delete',
  ],
  [
    /^(?:tags\.update\.tags\.posts|site_pattern_category\.update\.site_pattern_category\.blocks)$/,
    'a list under a filter by a term follows the parent of the term, and these have none; other taxonomies of plugins may',
  ],
  [
    /^(?:tags|site_pattern_category)\.create\.contents$/,
    'a content of WordPress 6.7 shows such a term only when something has it; contents of later versions and of plugins show all',
  ],
  [/^site_pattern_category\.\w+\.search\/term$/, 'a search of WordPress does not show this taxonomy'],
  [
    /^blocks\.(?:create|update|delete|related\.site_pattern_category)\.site_pattern_category$/,
    'WordPress has another name for the property, wp_pattern_category; it shows with a server that has the name of the gateway',
  ],
  [
    /^pages\.hidden\.(?:parent|slug)\.contents\.any$/,
    'WordPress renders the link of a page below a draft with a class; it shows in what a plugin renders without one',
  ],
  [
    /^navigation\.(?:create|update|delete)\.contents\.any$/,
    'where a menu is missing, empty or a draft, WordPress renders another one, with a class; it shows where the list of pages is not registered either',
  ],
  [
    /^template-parts\.(?:update|delete)\.contents\.any$/,
    'WordPress renders a part in an element with a class, also an empty one; it shows where a theme removes the class',
  ],
  [/^pages\.related\.parent\+link\.oembed$/, 'the update goes together with `minor`, which reaches the same'],
  [
    /^menus\.create\.contents\.any$/,
    'WordPress renders nothing of a new menu, which is empty; what it hides had a class',
  ],
  [/^users\.create\.contents$/, 'no block of WordPress shows a user without posts; those of plugins do'],
  [
    /^settings\.argument\.time_format\.contents$/,
    'no block of WordPress 6.7 shows a time in this format; those of plugins do',
  ],
  [/^global-styles\.update\.themes$/, 'themes show the id of the styles, which an update keeps'],
  [
    /^site_pattern_category\.(?:update|delete)\.site_pattern_category\.(?:posts|pages|media)$/,
    'only with a plugin that gives categories of patterns to other collections',
  ],
  [/^themes\./, 'read only: no route writes there'],
  [/^plugins\./, 'no read of the fuzzer shows what a plugin adds'],
  [/^(?:sidebars|global-styles)\.(?:create|delete)\./, 'can only be updated'],
  [/^settings\.(?:update|delete)\./, 'no such write: a POST to the settings counts as `create`'],
  [
    /^(?:pages|media)\.(?:create|update|delete|hidden\.\w+|deleted-hidden)\.(?:categories|tags)$/,
    'only with a plugin that gives categories or tags to pages, media or patterns',
  ],
]

/** A fault, and what has been seen of it. */
export type Standing = {
  readonly plant: Plant
  readonly unobservable: string | undefined
  /** How many writes the run had sent, and how many of these the fault concerns, when a gateway gave a stale response. */
  found: { readonly writes: number; readonly concerned: number; readonly by: string } | undefined
  /** Writes so far that the fault concerns. */
  concerned: number
  /** Stored responses that this effect alone dropped. */
  alone: number
  /** Those of them that WordPress gives as before. */
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
      alone: 0,
      needless: 0,
      unseen: 0,
    }))

const maxUnseen = 8

/** Is the fault still looked for? */
export const isOpen = ({ found, unobservable, unseen }: Standing): boolean =>
  found === undefined && unobservable === undefined && unseen < maxUnseen

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

const inWordPress = (name: string): string => name.replace(/^site_pattern_category\b/, 'wp_pattern_category')

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

/** What is known of faults that were not found, by their names. */
const remarks: readonly (readonly [names: RegExp, remark: string])[] = [
  [
    /^comments\.create\.(?:siblings|posts|pages|embedded)$|^media\.create\.(?:posts|pages)$/,
    'counts only where the response does not say to what the item belongs',
  ],
  [
    /^(?:pages\.hidden\.slug\.siblings|posts\.hidden\.categories\.categories)$/,
    'seen by hand: without it the link of a page below a draft, and the list of the terms of a draft, were stale',
  ],
]

const remarkFor = (name: string): string => remarks.find(([names]) => names.test(name))?.[1] ?? ''

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${lines.join('\n')}\n`
}

export const cell = (text: string): string =>
  text.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').slice(0, 160)

/** No stored response was dropped by this effect alone. */
const isCovered = ({ alone, concerned }: Standing): boolean => alone === 0 && concerned > 0

/** A page about all faults, for docs/evidence. */
export const faultsPage = (standings: readonly Standing[], writes: number, seed: number): string => {
  const found = standings.filter((one) => one.found !== undefined)
  const unobservable = standings.filter((one) => one.unobservable !== undefined)
  const missed = standings.filter((one) => one.found === undefined && one.unobservable === undefined)
  const visible = standings.length - unobservable.length
  const covered = missed.filter(isCovered)
  const others = missed.filter((one) => !isCovered(one))
  const inOrder = found.toSorted((a, b) => (a.found?.writes ?? 0) - (b.found?.writes ?? 0))
  const within = found.filter((one) => (one.found?.writes ?? 0) <= 1000).length
  return [
    '# Planted faults',
    '',
    'Would writes find a missing rule of invalidation? Written by `npm run fuzz:promise -- --plant-all`, with `PROMISE_PAGE` set. A fault removes one effect from the table (`src/wordpress/tags/tags.ts`, `src/wordpress/routes/refinements.ts`). The command sends [writes that aim at the rows](../../test/real/promise-fuzz/aimed-writes.ts) to a [real WordPress that is made for them](../../test/real/promise-fuzz/aimed-site.ts), and then random ones, up to `PROMISE_WRITES` in all. It computes, after each write, which of some 300 stored responses (60 after a random write) each fault would keep. If WordPress now gives another response, the command plants the fault in a gateway and repeats the write on a copy of the earlier database. The fault is found if that gateway gives the old response. All faults share the writes.',
    '',
    `Seed ${seed}, ${writes} writes: of ${standings.length} faults ${unobservable.length} [cannot show on this site](#without-a-visible-effect-on-this-site), each with a reason. Of the other ${visible} faults ${found.length} were found (${((100 * found.length) / visible).toFixed(1)} %), ${within} of them within 1,000 writes. ${covered.length} removed an effect that dropped no stored response alone: another effect of the same row reached each of them. ${others.length} were not found otherwise.`,
    '',
    '## Found',
    '',
    '`writes`: number of writes until the fault was found. `of its kind`: how many of them concern the fault. The user of the read is in parentheses.',
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
    '`writes`: number of writes that concern the fault. `dropped without need`: stored responses that this effect alone removed, although WordPress still gave the same response. `not confirmed`: responses that were computed to be stale, but were not when the fault was planted.',
    '',
    table(
      ['fault', 'writes', 'dropped without need', 'not confirmed', 'remark'],
      others.map(({ plant, concerned, needless, unseen }) => [
        plant.name,
        String(concerned),
        String(needless),
        String(unseen),
        remarkFor(plant.name),
      ]),
    ),
    '## Covered by other effects of their rows',
    '',
    covered.length === 0
      ? 'None.'
      : `${covered.map(({ plant, concerned }) => `${plant.name} (${concerned} writes)`).join(', ')}.`,
    '',
    '## Without a visible effect on this site',
    '',
    table(
      ['fault', 'why'],
      unobservable.map(({ plant, unobservable: why }) => [plant.name, why ?? '']),
    ),
  ].join('\n')
}
