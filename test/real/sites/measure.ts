import { siteService, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { token } from '../companion/intake.ts'
import { forAll } from '../for-all.ts'
import { type Core, pluginsOf } from './archives.ts'
import { describeTags, type TagsOfRoute, tagsOf } from './measure-tags.ts'
import { coreRoutes, type Ids, idsOn, readsOf, readsOfPlugins } from './reads.ts'
import { type RealSite, startRealSite } from './start-real-site.ts'
import { type SiteWrite, sixWrites } from './writes.ts'

const root = '/index.php/wp-json'

/** What one write left of the stored responses. */
export type LeftByWrite = {
  readonly write: string
  readonly stored: number
  readonly left: number
  /** Left although WordPress itself says something else now. */
  readonly stale: readonly string[]
  readonly dropped: readonly string[]
}

/** What a set of plugins costs a gateway. */
export type SiteMeasurement = {
  readonly core: Core
  readonly set: string
  readonly withCompanion: boolean
  readonly reads: number
  /** Responses that are stored when they are read for the first time, and for the second. */
  readonly storedAtFirst: number
  readonly storedAtSecond: number
  /** Of the seven routes of core; without the companion none. */
  readonly tags: readonly TagsOfRoute[]
  readonly writes: readonly LeftByWrite[]
}

export type MeasuredSite = {
  readonly site: RealSite
  readonly gateway: TestGateway
  readonly ids: Ids
  /** What is read, plugins' routes included. */
  readonly paths: readonly string[]
  stop(): Promise<void>
}

/** Addresses differ by their ports alone, and their spelling of slashes. */
const withoutPorts = (text: string): string => text.replaceAll(/http:(?:\\?\/){2}127\.0\.0\.1:\d+/g, '@')

type Seen = { readonly isHit: boolean; readonly text: string }

const read = async (origin: string, path: string): Promise<Seen> => {
  const response = await fetch(`${origin}${root}${path}`)
  const status = response.headers.get('cache-status') ?? ''
  return { isHit: status.startsWith('trellis; hit'), text: withoutPorts(await response.text()) }
}

/** A real site and a gateway in front of it. */
export const openSite = async (
  set: string,
  withCompanion: boolean,
  core: Core = '7.1',
): Promise<MeasuredSite> => {
  const port = await freePort()
  const gateways = [`http://127.0.0.1:${port}`]
  const site = await startRealSite({ core, plugins: pluginsOf(set), withCompanion, gateways })
  const gateway = await startTestGateway({
    admin: { port },
    services: {
      blog: siteService(site.origin, {
        ...{ names: 'same', mount: root, discovery: { source: 'upstream' } },
        // CoCart says of each response of the site that it may not be stored.
        cache: { rules: [{ match: 'GET /**', ttl: '1h', override: pluginsOf(set).includes('cocart') }] },
        ...(withCompanion ? { changes: { token, poll: '1s' } } : {}),
      }),
    },
  })
  const stop = async (): Promise<void> => {
    await gateway.close()
    await site.stop()
  }
  try {
    await untilLearned(gateway, withCompanion)
    const ids = await idsOn(site.origin)
    const responses = await forAll(readsOfPlugins, (path) => fetch(`${site.origin}${root}${path}`))
    const ofPlugins = readsOfPlugins.filter((_, at) => responses[at]?.ok)
    await Promise.all(responses.map((response) => response.arrayBuffer()))
    return { site, gateway, ids, paths: [...readsOf(ids), ...ofPlugins], stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The index is read, and the log of the companion is heard. */
const untilLearned = async (gateway: TestGateway, withCompanion: boolean): Promise<void> => {
  for (let tries = 0; ; tries += 1) {
    const index = await fetch(`${gateway.publicAddress}${root}/`)
    const text = await index.text()
    const isHeard = (await gateway.metric('trellis_changes_state', 'state="heard"')) === 1
    if (index.ok && (isHeard || !withCompanion)) return
    if (tries === 300) throw new Error(`not learned: ${index.status} ${text.slice(0, 200)}, heard ${isHeard}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** Reads until all that can be stored is; at most some seconds. */
export const storeAll = async (
  { gateway }: Pick<MeasuredSite, 'gateway'>,
  paths: readonly string[],
  maxTries = 20,
): Promise<readonly string[]> => {
  const stored = new Set<string>()
  for (let tries = 0; tries < maxTries && stored.size < paths.length; tries += 1) {
    if (tries > 2) await new Promise((resolve) => setTimeout(resolve, 300))
    const missing = paths.filter((path) => !stored.has(path))
    const seen = await forAll(missing, (path) => read(gateway.publicAddress, path))
    for (const [at, path] of missing.entries()) if (seen[at]?.isHit) stored.add(path)
  }
  return paths.filter((path) => stored.has(path))
}

/** Those that WordPress itself answers otherwise. A request with many reads in it has other fields of ACF, and writes what pages write. */
export const staleAmong = async (
  { site }: Pick<MeasuredSite, 'site'>,
  hits: ReadonlyMap<string, string>,
): Promise<readonly string[]> => {
  const texts = await forAll([...hits.keys()], async (path) => (await read(site.origin, path)).text)
  return [...hits].filter(([, text], at) => text !== texts[at]).map(([path]) => path)
}

/** Which of the stored responses are still hits, and what they say. */
export const hitsAmong = async (
  { gateway }: Pick<MeasuredSite, 'gateway'>,
  stored: readonly string[],
): Promise<ReadonlyMap<string, string>> => {
  const seen = await forAll(stored, (path) => read(gateway.publicAddress, path))
  return new Map(
    stored.flatMap((path, at): [string, string][] => (seen[at]?.isHit ? [[path, seen[at].text]] : [])),
  )
}

/** Which of the stored responses are still hits, and which of these are older than WordPress's own. */
const compareStored = async (
  measured: MeasuredSite,
  stored: readonly string[],
): Promise<Pick<LeftByWrite, 'stored' | 'left' | 'stale' | 'dropped'>> => {
  const hits = await hitsAmong(measured, stored)
  const dropped = stored.filter((path) => !hits.has(path))
  return { stored: stored.length, left: hits.size, stale: await staleAmong(measured, hits), dropped }
}

const sendWrite = async (
  { site, gateway }: Pick<MeasuredSite, 'gateway' | 'site'>,
  { name, method, path, body }: SiteWrite,
): Promise<void> => {
  const response = await site.rest(method, path, body, gateway.publicAddress)
  const text = await response.text()
  if (!response.ok) throw new Error(`${name}: ${response.status} ${text.slice(0, 300)}`)
}

/**
 * Writes what a site has in its second week: the first use of an application password is noted as a change of its user, and Yoast SEO
 * notes at the first save of an author's post whether the author has any.
 */
const saveOnceByEachAuthor = async (measured: MeasuredSite): Promise<void> => {
  for (const author of measured.ids.users) {
    const query = `author=${author}&per_page=1&_fields=id`
    const response = await fetch(`${measured.site.origin}${root}/wp/v2/posts?${query}`)
    const [post] = (await response.json()) as readonly { readonly id: number }[]
    if (post === undefined) continue
    const path = `/wp/v2/posts/${post.id}`
    await sendWrite(measured, { name: `save by author ${author}`, method: 'PUT', path, body: {} })
  }
}

/** Stores every `nth` of 34 different reads, performs every `nth` of six writes, and compares what is left with WordPress's own responses. */
export const measureSite = async (
  set: string,
  withCompanion: boolean,
  core: Core = '7.1',
  nth = 1,
): Promise<SiteMeasurement> => {
  const measured = await openSite(set, withCompanion, core)
  try {
    const { gateway, ids } = measured
    const some = <Row>(rows: readonly Row[]): readonly Row[] => rows.filter((_, at) => at % nth === 0)
    const paths = some(measured.paths)
    const reads = some(readsOf(ids))
    const hitsNow = async (): Promise<number> =>
      (await forAll(reads, (path) => read(gateway.publicAddress, path))).filter(({ isHit }) => isHit).length
    await hitsNow()
    const [storedAtFirst, storedAtSecond] = [await hitsNow(), await hitsNow()]
    await saveOnceByEachAuthor(measured)
    const writes: LeftByWrite[] = []
    for (const write of some(sixWrites(ids, 1))) {
      const stored = await storeAll(measured, paths)
      await sendWrite(measured, write)
      writes.push({ write: write.name, ...(await compareStored(measured, stored)) })
    }
    const tags = withCompanion
      ? await forAll(coreRoutes(ids), (path) => tagsOf(measured.site.origin, path))
      : []
    return { core, set, withCompanion, reads: reads.length, storedAtFirst, storedAtSecond, writes, tags }
  } finally {
    await measured.stop()
  }
}

/** Share of the stored responses that the writes left, in the mean. */
export const meanLeft = ({ writes }: SiteMeasurement): number =>
  writes.reduce((sum, one) => sum + shareOf(one), 0) / writes.length

const shareOf = ({ left, stored }: LeftByWrite): number => (stored === 0 ? 0 : left / stored)

/** Writes that leave less with the companion than without it. */
export const lessWithCompanion = (
  without: SiteMeasurement,
  withCompanion: SiteMeasurement,
): readonly string[] =>
  withCompanion.writes.flatMap((one) => {
    const other = without.writes.find(({ write }) => write === one.write)
    if (other === undefined || shareOf(one) >= shareOf(other)) return []
    return [`${one.write}: ${one.left}/${one.stored}, without it ${other.left}/${other.stored}`]
  })

const percent = (share: number): string => `${(100 * share).toFixed(0)} %`

/** One line for people. */
export const line = (one: SiteMeasurement): string => {
  const { core, set, withCompanion, reads, storedAtFirst, storedAtSecond, writes } = one
  const stale = writes.flatMap(({ stale }) => stale).length
  const tags = withCompanion ? `; ${describeTags(one.tags)}` : ''
  return [
    `${set} on ${core}, ${withCompanion ? 'with' : 'without'} the companion:`,
    `stored at once ${storedAtFirst}/${reads}, at the second reading ${storedAtSecond}${tags};`,
    `left ${writes.map(({ write, left, stored }) => `${write} ${left}/${stored}`).join(', ')};`,
    `mean ${percent(meanLeft(one))}, ${stale} older`,
  ].join(' ')
}
