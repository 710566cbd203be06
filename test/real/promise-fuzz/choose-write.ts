import { forms } from './forms.ts'
import { operations } from './operations.ts'
import type { Pools } from './pools.ts'
import type { Random } from './random.ts'
import { type Operation, type RestStyle, restStyles, type Sending, type Write } from './write.ts'

/** How often, for each collection; the others 2. */
const weights: Readonly<Record<string, number>> = {
  'posts.create': 4,
  'posts.update': 12,
  'pages.create': 3,
  'pages.update': 8,
  'blocks.update': 4,
  'menu-items.update': 3,
  'categories.update': 4,
  'tags.update': 4,
  'template-parts.update': 3,
  'notes.update': 3,
  'media.update': 3,
  'settings.update': 1,
  'users.delete': 1,
  'menus.delete': 1,
  'posts.autosave': 1,
  'templates.delete': 1,
}

const special = ['upload', 'schedule', 'cron'] as const

const kinds = [...Object.keys(operations), ...Object.keys(forms), ...special]
const ofInterface = Object.keys(operations).flatMap((kind) =>
  Array.from({ length: weights[kind] ?? 2 }, () => kind),
)

/** What goes through the pages' service leaves little stored, so that few later writes could be seen to leave too much. */
const anyKind = (random: Random): string => {
  if (random.chance(0.06)) return random.pick(Object.keys(forms))
  return random.chance(0.04) ? random.pick(special) : random.pick(ofInterface)
}

/** Batches are refused for these. */
const unbatchable = /^\/(?:garden-notes|wp\/v2\/(?:media|templates|template-parts|comments|settings|.*\/autosaves))/

const styleOf = (operation: Operation, random: Random): RestStyle => {
  if (random.chance(0.8)) return 'json'
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

/** A random write; with `focus` most of them are of kinds that begin so. */
export const chooseWrite = (name: string, pools: Pools, random: Random, focus?: string): Write => {
  const focused = focus === undefined ? [] : kinds.filter((kind) => kind.startsWith(focus))
  const kind = random.pick(focused.length > 0 && random.chance(0.5) ? focused : [anyKind(random)])
  return { name, kind, ...sendingOf(kind, pools, random) }
}
