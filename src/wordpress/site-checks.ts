import { randomBytes } from 'node:crypto'
import { storageOf } from '../cache/cache.ts'
import { createTagNames } from '../cache/tag-names.ts'
import { systemClock } from '../clock.ts'
import { changesOf, pollMsOf, type ServiceConfig, type SiteConfig } from '../config/config.ts'
import { isJsonObject, parsedJson } from '../http/json-text.ts'
import type { Issue, Seen, UpstreamCheck, UpstreamChecks } from '../service/connection.ts'
import { pollHeaders, sitePath } from './changes/change-feeds.ts'
import {
  advertisedRoot,
  companionIssue,
  homeIssue,
  indexIssue,
  isIndex,
  loopIssue,
  otherRoots,
  type Reached,
  readIssue,
  rootIssue,
} from './index/site-issues.ts'
import { pluginsOf, type SitePlugin } from './site-plugins.ts'
import { companionTags } from './tags/companion-tags.ts'

const basePathOf = ({ upstream: { basePath } }: ServiceConfig): string => (basePath === '/' ? '' : basePath)

const reachedBy = ({ service: { mount, upstream }, publicUrl }: UpstreamCheck): Reached => ({
  publicUrl,
  mount,
  host: upstream.host,
})

/** What is at the root of the interface, and another root that has an index where this one has none. */
const searchIndex = async (ask: UpstreamCheck['ask'], basePath: string) => {
  const response = await ask(`${basePath}/`)
  if (indexIssue(basePath, response, [])?.kind !== 'no-wordpress')
    return { response, roots: [], otherResponse: undefined }
  for (const root of otherRoots(basePath)) {
    const otherResponse = await ask(`${root}/`)
    if (isIndex(otherResponse)) return { response, roots: [root], otherResponse }
  }
  return { response, roots: [], otherResponse: undefined }
}

/** What a WordPress says of itself: `root` is the announced path of its REST API, undefined where it cannot be read. */
export type SiteFacts = {
  readonly root: string | undefined
  readonly fault: string | undefined
  readonly hasCompanion: boolean
  /** Where WPGraphQL answers; absent: nowhere. */
  readonly graphqlPath?: string
  /** Absent where the index could not be read. */
  readonly plugins?: readonly SitePlugin[]
  /** Origin of the site's own address, in which its links begin; absent where it names none. */
  readonly home?: string
}

/** WPGraphQL names its root so; other programs behind the path do not. */
const rootOfGraphql = '"RootQuery"'

/** WPGraphQL answers beside WordPress itself, also where the permalinks of the REST API begin with `/index.php`. */
const graphqlPathAt = async (ask: UpstreamCheck['ask'], root: string): Promise<string | undefined> => {
  const prefix = root.replace(/\/(?:wp|site)-json$/, '')
  for (const path of new Set([`${prefix.replace(/\/index\.php$/, '')}/graphql`, `${prefix}/graphql`])) {
    const response = await ask(`${path}?query=%7B__typename%7D`)
    const isGraphql = response.kind === 'answer' && response.status === 200
    if (isGraphql && response.content.includes(rootOfGraphql)) return path
  }
  return undefined
}

/** What the index says beside its routes. */
const indexFacts = (response: Seen): Pick<SiteFacts, 'plugins' | 'home'> => {
  if (response.kind === 'none') return {}
  const content = parsedJson(response.content.toString())
  const home = isJsonObject(content) ? content['home'] : undefined
  const isUrl = typeof home === 'string' && /^https?:\/\//.test(home) && URL.canParse(home)
  return { plugins: pluginsOf(content), ...(isUrl ? { home: new URL(home).origin } : {}) }
}

export const askSite = async ({ ask, service }: UpstreamCheck<SiteConfig>): Promise<SiteFacts> => {
  const basePath = basePathOf(service)
  const { response, roots, otherResponse } = await searchIndex(ask, basePath)
  const root = advertisedRoot(otherResponse ?? response)
  // The address of a site without permalinks is none of an interface.
  if (root === undefined || (root !== basePath && !isIndex(await ask(`${root}/`))))
    return { root: undefined, fault: indexIssue(basePath, response, roots)?.text, hasCompanion: false }
  const poll = await ask(`${sitePath(root)}/?trellis-changes=0`)
  const graphqlPath = await graphqlPathAt(ask, root)
  return {
    root,
    fault: undefined,
    hasCompanion: poll.kind === 'answer' && poll.status === 401,
    ...(graphqlPath === undefined ? {} : { graphqlPath }),
    ...indexFacts(root === basePath ? (otherResponse ?? response) : await ask(`${root}/`)),
  }
}

/** Is the list that nearly all clients read stored where a rule caches it? */
const ofReads = async (check: UpstreamCheck): Promise<Issue | undefined> => {
  const contract = await check.contract()
  const list = contract.rows.find(({ collection, kind }) => collection === 'posts' && kind === 'collection')
  const policy = contract.policyFor('GET', list?.template ?? '/')
  if (policy.rule === undefined) return undefined
  const target = `${basePathOf(check.service)}/wp/v2/posts?per_page=1&_fields=id`
  const response = await check.ask(target)
  if (response.kind === 'none' || response.status !== 200) return undefined
  const partition = policy.rule.scope === 'credential' ? 'credential' : 'public'
  const decision = storageOf(response, { partition, headers: {}, policy }, systemClock.now())
  return decision.kind === 'store' ? undefined : readIssue(target, decision.reason, response.headers)
}

const present = (issues: readonly (Issue | undefined)[]): readonly Issue[] =>
  issues.filter((issue) => issue !== undefined)

const described = ['posts', 'pages', 'categories', 'tags', 'media', 'comments', 'users'] as const

/** How many of the lists that nearly all clients read the companion describes completely, and what keeps the others from it. */
const ofDescriptions = async ({ ask, service }: UpstreamCheck): Promise<readonly string[]> => {
  const names = createTagNames(service.name)
  const lists = await Promise.all(
    described.map(async (name) => ({ name, response: await ask(`${basePathOf(service)}/wp/v2/${name}`) })),
  )
  const read = lists.flatMap(({ name, response }) =>
    response.kind === 'answer' && response.status === 200 && response.hints?.tags !== undefined
      ? [{ name, ...response.hints, isComplete: companionTags(names, response).isComplete }]
      : [],
  )
  if (read.length === 0) return []
  const complete = read.filter(({ isComplete }) => isComplete).length
  const others = read
    .filter(({ isComplete }) => !isComplete)
    .map(({ name, incomplete = 'the companion does not say why' }) => `${name} (${incomplete.slice(0, 200)})`)
  const text = `the companion describes ${complete} of ${read.length} core lists completely`
  const untested = new Set(read.flatMap((one) => one.untested?.slice(0, 200).split(', ') ?? []))
  return [
    others.length === 0
      ? text
      : `${text}; each change of anything public drops the others: ${others.join(', ')}`,
    ...(untested.size === 0
      ? []
      : [
          `the companion was not tested with ${[...untested].join(', ')}, only with other versions: a new post or the description of a category drops more than it has to`,
        ]),
  ]
}

/** Checks the upstream of a site. */
export const siteChecks: UpstreamChecks & Required<Pick<UpstreamChecks, 'serverIssues'>> = {
  withoutChanges:
    'the companion is not set up: changes that bypass the gateway appear when the ttl ends (trellis init companion DIR)',
  facts: ofDescriptions,
  issues: async (check) => {
    const { ask, service } = check
    const basePath = basePathOf(service)
    const { response, roots } = await searchIndex(ask, basePath)
    return present([
      indexIssue(basePath, response, roots),
      homeIssue(reachedBy(check), response),
      rootIssue(basePath, service.mount, response),
      isIndex(response) ? await ofReads(check) : undefined,
    ])
  },
  // Asks the companion for what is new, where the service has its token.
  serverIssues: async ({ ask, service }) => {
    const changes = changesOf(service)
    if (changes === undefined || pollMsOf(service, changes) === 0) return []
    const target = `${sitePath(basePathOf(service))}/?trellis-changes=0&nonce=${randomBytes(8).toString('hex')}`
    return present([
      companionIssue(await ask(target, pollHeaders(changes.token.reveal(), target, systemClock))),
    ])
  },
}

/** Checks the front page of an open service on the server of a site. */
export const pageChecks: UpstreamChecks = {
  issues: async (check) =>
    check.sharing.some(({ contract }) => contract === 'site')
      ? present([loopIssue(reachedBy(check), await check.ask(`${basePathOf(check.service)}/`))])
      : [],
}
