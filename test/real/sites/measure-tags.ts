import { unpackedText } from '../../../src/wordpress/tags/packed-description.ts'
import { type Core, pluginsOf } from './archives.ts'
import { coreRoutes, idsOn } from './reads.ts'
import { startRealSite } from './start-real-site.ts'

const root = '/index.php/wp-json'

/** With nginx's buffer of 4 KiB for a head this leaves room for the fields of others. */
const maxTagBytes = 1_500

/** What the companion says of the response to one of the seven routes of core. */
export type TagsOfRoute = { readonly path: string; readonly isComplete: boolean; readonly bytes: number }

/** Long ones are packed. */
export const textOfTags = (tags: string): string =>
  tags.startsWith('v2;') ? (unpackedText(tags.slice(3), 65_536) ?? '') : tags

export const tagsOf = async (origin: string, path: string): Promise<TagsOfRoute> => {
  const response = await fetch(`${origin}${root}${path}`)
  await response.arrayBuffer()
  const tags = response.headers.get('trellis-tags') ?? ''
  return { path, isComplete: /(?:^|;)complete\b/.test(textOfTags(tags)), bytes: tags.length }
}

/** Of a site that has been read once: its first reading is what plugins build their indexes in. */
export const measureTags = async (set: string, core: Core = '7.1'): Promise<readonly TagsOfRoute[]> => {
  const site = await startRealSite({ core, plugins: pluginsOf(set), withCompanion: true })
  try {
    const paths = coreRoutes(await idsOn(site.origin))
    const routes: TagsOfRoute[] = []
    for (const path of [...paths, ...paths]) routes.push(await tagsOf(site.origin, path))
    return routes.slice(paths.length)
  } finally {
    await site.stop()
  }
}

/** Routes whose response is not complete, or whose tags are longer than they should be. */
export const tagFaults = (routes: readonly TagsOfRoute[]): readonly string[] =>
  routes.flatMap(({ path, isComplete, bytes }) => [
    ...(isComplete ? [] : [`${path} is not complete`]),
    ...(bytes <= maxTagBytes ? [] : [`${path} has ${bytes} bytes of tags`]),
  ])

export const describeTags = (routes: readonly TagsOfRoute[]): string => {
  const complete = routes.filter(({ isComplete }) => isComplete).length
  const bytes = routes.map((route) => route.bytes)
  return `complete ${complete} of ${routes.length}, tags ${Math.min(...bytes)} to ${Math.max(...bytes)} bytes`
}
