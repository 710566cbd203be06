import { forms } from './forms.ts'
import { operations } from './operations.ts'
import type { Pools } from './pools.ts'
import { quietKinds, quietSending } from './quiet.ts'
import type { Random } from './random.ts'
import { type Operation, type RestStyle, restStyles, type Sending, type Write } from './write.ts'

/** How often, for each collection; the others 4. */
const weights: Readonly<Record<string, number>> = {
  'posts.create': 8,
  'posts.update': 30,
  'posts.update.image': 6,
  'posts.update.status': 8,
  'media.update.post': 6,
  'posts.delete': 6,
  'pages.create': 6,
  'pages.update': 24,
  'blocks.update': 12,
  'navigation.update': 10,
  'menu-items.create': 6,
  'menu-items.update': 12,
  'categories.update': 12,
  'tags.update': 12,
  'comments.create': 8,
  'comments.update': 8,
  'template-parts.update': 10,
  'media.update': 10,
  'users.update': 8,
  // After these nothing is stored any more, so that few writes after them could be seen to leave too much.
  'notes.create': 2,
  'notes.update': 2,
  'notes.delete': 1,
  'settings.update': 6,
  'users.delete': 1,
  'users.update.role': 2,
}

const special = ['upload', 'schedule', 'cron'] as const

const kinds = [...Object.keys(operations), ...Object.keys(forms), ...special, ...quietKinds]
const ofInterface = Object.keys(operations).flatMap((kind) =>
  Array.from({ length: weights[kind] ?? 4 }, () => kind),
)

/** What goes through the pages' service leaves little stored, so that few later writes could be seen to leave too much. */
const anyKind = (random: Random): string => {
  if (random.chance(0.04)) return random.pick(Object.keys(forms))
  if (random.chance(0.15)) return random.pick(quietKinds)
  return random.chance(0.04) ? random.pick(special) : random.pick(ofInterface)
}

/** Batches are refused for these. */
const unbatchable =
  /^\/(?:garden-notes|wp-sync|wc\/|wp\/v2\/(?:media|block-renderer|templates|template-parts|comments|settings|.*\/autosaves))/

const styleOf = (operation: Operation, random: Random): RestStyle => {
  if (random.chance(0.9)) return 'json'
  const style = random.pick(restStyles)
  // Nested values have no spelling in a query that all agree on.
  const nested = Object.values(operation.body ?? {}).some((value) => typeof value === 'object')
  return nested && (style === 'query' || style === 'form') ? 'json' : style
}

const operationOf = (kind: string, pools: Pools, random: Random): Operation => {
  const make = operations[kind]
  if (make === undefined) throw new Error(`no operation ${kind}`)
  return make(pools, random)
}

const sendingOf = (kind: string, pools: Pools, random: Random): Sending => {
  const form = forms[kind]
  if (form !== undefined) return form(pools, random)
  const quiet = quietSending(kind, pools, random)
  if (quiet !== undefined) return quiet
  switch (kind) {
    case 'upload':
      return { door: 'upload', route: '/wp/v2/media', file: `new-${random.int(100)}.png` }
    case 'cron':
      return { door: 'cron' }
    case 'schedule': {
      const operation = operationOf('posts.create', pools, random)
      const body = { ...operation.body, status: 'future', date: 'soon', date_gmt: 'soon' }
      return { door: 'rest', style: 'json', operation: { ...operation, body } }
    }
    default: {
      const operation = operationOf(kind, pools, random)
      if (random.chance(0.12) && !unbatchable.test(operation.route)) {
        const more = Array.from({ length: random.int(3) }, () =>
          operationOf(random.pick(Object.keys(operations)), pools, random),
        ).filter(({ route }) => !unbatchable.test(route))
        return { door: 'batch', operations: [operation, ...more] }
      }
      return { door: 'rest', style: styleOf(operation, random), operation }
    }
  }
}

/** What a site begins with, so that there are things to write to that render others. */
const building = [
  'notes.create',
  'wp_pattern_category.create',
  'posts.create',
  'pages.create',
  'posts.create',
  'pages.create',
  'blocks.create',
  'pages.create',
  'posts.create',
  'menu-items.create',
] as const

/** A random write; with `focus` most of them are of kinds that begin so. */
export const chooseWrite = (
  count: number,
  previous: Write | undefined,
  pools: Pools,
  random: Random,
  focus?: string,
  /** The share of writes of these kinds. */
  focusShare = 0.5,
): Write => {
  const name = `w${count}`
  const first = previous?.kind === 'schedule' && random.chance(0.6) ? 'cron' : building[count - 1]
  if (first !== undefined) return { name, kind: first, ...sendingOf(first, pools, random) }
  const focused = focus === undefined ? [] : kinds.filter((kind) => kind.startsWith(focus))
  const kind = random.pick(focused.length > 0 && random.chance(focusShare) ? focused : [anyKind(random)])
  return { name, kind, ...sendingOf(kind, pools, random) }
}
