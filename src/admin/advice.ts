import type { BypassReason } from '../cache/decide-caching.ts'
import type { MissReason, NoStoreReason } from '../cache/events.ts'
import { type Descriptions, describedText } from './descriptions.ts'

/** What keeps a route from hits. `emptied`: a write that emptied the cache, with its method before the route. */
export type LostHits = {
  readonly service: string
  readonly route: string
  readonly reason: string
  readonly count: number
  /** Requests of the route, hits included. */
  readonly reads: number
}

/** What the cache may use. */
export type CacheLimits = { readonly maxBytes: number }

type Advised = {
  /** What happens, and what to do about it. */
  readonly text: string
  /** Settings of the service to copy, as lines of YAML below `services.NAME`. */
  readonly settings?: readonly string[]
  /** Settings of the whole gateway, as lines of YAML. */
  readonly global?: readonly string[]
}

export type Advice = LostHits & {
  /** Of what `reads` counts; of an emptied cache undefined. */
  readonly share: number | undefined
  /** What `reads` counts, in the plural. */
  readonly unit: 'reads' | 'stored responses'
  readonly text: string
  /** YAML to copy into the configuration. */
  readonly yaml?: string
}

/** Operations of GraphQL stand in the place of routes; these have no name of their own. */
const isOperation = (route: string): boolean => /^(?:query|mutation|subscription|batch)\b/.test(route)
const namelessOperations: ReadonlySet<string> = new Set(['query', 'query other', 'batch'])

/** Which rule matches a route: `/posts/{id}` is `/posts/*`. What has no row may be any path. */
const pattern = (route: string): string => {
  if (isOperation(route)) return namelessOperations.has(route) ? 'query *' : route
  return `GET ${route.startsWith('/') ? route.replaceAll(/\{[^}]*\}/g, '*') : '/**'}`
}

/** Which writes a method and a route are; the access log has the path of those without a row. */
const writePattern = (route: string): string => {
  const at = route.indexOf(' ') + 1
  return route[at] === '/' ? route.replaceAll(/\{[^}]*\}/g, '*') : `${route.slice(0, at)}/NAME`
}

const rule = (route: string, more: string): readonly string[] => [
  'cache:',
  '  rules:',
  `    - { match: '${pattern(route)}', ${more} }`,
]

const nothing = (text: string): Advised => ({ text })

type Advisable = Exclude<BypassReason, 'method'> | NoStoreReason | MissReason | 'emptied'

/** For each reason what to do. A reason that costs nothing that could have been a hit has no row. */
const advised: Readonly<Partial<Record<Advisable, (route: string, limits: CacheLimits) => Advised>>> = {
  'no-rule': (route) => ({
    text: 'no rule stores these reads. Add a rule if the responses are the same for all callers',
    settings: rule(route, 'ttl: 60s'),
  }),
  'ambiguous-path': () =>
    nothing('servers read these spellings of a path in different ways. Send the plain spelling'),
  authorization: (route) => ({
    text: 'these reads carry a credential. Do not send it with public reads, or store a response for each credential',
    settings: rule(route, 'ttl: 60s, scope: credential'),
  }),
  cookie: () => ({
    text: 'these reads carry a cookie that may change the response: `trellis explain` names it. If it changes nothing, list it',
    settings: ['cache:', '  harmlessCookies: [NAME]'],
  }),
  nonce: () => nothing('these reads carry the nonce of a logged-in user. Do not send it with public reads'),
  'context-edit': () => nothing('`context=edit` shows what editors see. Leave it out of public reads'),
  password: () => nothing('`password` unlocks protected content. Leave it out of public reads'),
  'non-public-status': () => nothing('`status` names drafts. Leave it out of public reads'),
  'api-key': () =>
    nothing('these reads carry a credential in the query. Send it in a header, or leave it out'),
  'request-content': () => nothing('these reads have a body. Move it to the query'),
  'request-no-store': () =>
    nothing('these clients ask for `Cache-Control: no-store`. Leave the header out of public reads'),
  'no-freshness': (route) => ({
    text: 'the upstream states no lifetime, and no rule does. Add one',
    settings: rule(route, 'ttl: 60s'),
  }),
  'no-store': (route) => ({
    text: 'the upstream says `no-store`. If that is a mistake, correct it there, or overrule it',
    settings: rule(route, 'ttl: 60s, override: true'),
  }),
  private: (route) => ({
    text: 'the upstream says `private`. Store a response for each credential, or overrule it',
    settings: rule(route, 'ttl: 60s, override: true, scope: credential'),
  }),
  status: (route) => ({
    text: 'these responses have another status than 200. Responses with 404 and 410 can be stored',
    settings: rule(isOperation(route) ? 'query' : '', 'ttl: 60s, negativeTtl: 10s'),
  }),
  'set-cookie': () => nothing('these responses set a cookie. Set none on this route'),
  token: () => ({
    text: 'a header of these responses looks like a token of its reader. If it is none, list it',
    settings: ['cache:', '  harmlessFields: [NAME]'],
  }),
  'vary-any': () => nothing('`Vary` names a header that always differs. Correct it in the upstream'),
  'too-large': () => nothing('these responses are longer than `cache.maxEntryBytes`. Raise it'),
  'no-room': () => nothing('too many bytes were in flight. Raise `limits.bufferedBytes`'),
  'not-admitted': () =>
    nothing(
      'the cache is nearly full, and a response is stored at its second request. Raise `cache.maxBytes`',
    ),
  unsettled: () =>
    nothing('a write got no response, and may still be carried out. Find out why writes fail, see the log'),
  unreadable: () =>
    nothing(
      'these responses are not the JSON of their route: HTML, or a PHP warning before it. Repair the upstream',
    ),
  coding: () => nothing('these responses have a `Content-Encoding` that cannot be undone. Send gzip or br'),
  'key-header': () => ({
    text: 'these reads carry a header that is part of the key: `trellis explain` names it. If it changes nothing, list it',
    settings: ['cache:', '  harmlessFields: [NAME]'],
  }),
  'key-parameter': () => ({
    text: 'these reads have query parameters that the route does not declare, and each value has a response of its own. If your service does not read them, remove them',
    settings: ['parameters:', '  unknown: strip'],
  }),
  vary: () =>
    nothing(
      '`Vary` names a header with many values. Correct it in the upstream, or let clients send one value',
    ),
  expired: (route) => ({
    text: 'responses are too old when they are read again. Store them longer: a write through the gateway drops them at once',
    settings: rule(route, 'ttl: 10m'),
  }),
  evicted: (_route, { maxBytes }) => ({
    text: 'responses were evicted for others before they were read again. Give the cache more memory',
    global: ['cache:', `  maxBytes: ${2 * Math.ceil(Math.max(1, maxBytes) / 1_048_576)}MiB`],
  }),
  emptied: (route) => ({
    ...(isOperation(route.split(' ').slice(1).join(' '))
      ? {}
      : {
          settings: [
            'cache:',
            `  harmlessWrites: ['${writePattern(route)}'] # only if it changes nothing that readers see`,
          ],
        }),
    text: `${route} emptied the cache (the access log has its path). If it changes nothing that readers see, say so; a service that reports its changes says what each request changed`,
  }),
}

const yamlOf = (service: string, settings: readonly string[]): string =>
  ['services:', `  ${service}:`, ...settings.map((line) => `    ${line}`)].join('\n')

const adviceOn = (lost: LostHits, limits: CacheLimits): readonly Advice[] => {
  const { service, route, reason, count, reads } = lost
  const of = Object.hasOwn(advised, reason) ? advised[reason as Advisable] : undefined
  if (of === undefined || count === 0) return []
  const { text, settings, global } = of(route, limits)
  const share = reason === 'emptied' || reads === 0 ? undefined : Math.min(1, count / reads)
  const yaml = settings === undefined ? global?.join('\n') : yamlOf(service, settings)
  return [{ ...lost, share, unit: 'reads', text, ...(yaml === undefined ? {} : { yaml }) }]
}

/** A response that is not described completely is lost at each change: it is taken for one read. With untested plugins some more are lost. */
const adviceOnDescriptions = (descriptions: Descriptions): readonly Advice[] => {
  const { service, stored: reads, complete } = descriptions
  const count = reads - complete
  if (count === 0 && descriptions.untested.length === 0) return []
  const reason = count === 0 ? 'untested' : 'incomplete'
  const of = { service, route: 'all routes', reason, count, reads, share: count / reads }
  return [{ ...of, unit: 'stored responses', text: describedText(descriptions) }]
}

/** Where a response that was lost to an emptied cache would have been read again it was a hit: it is taken for as many reads. */
const readsForEach = 10

const weight = ({ reason, count }: LostHits): number => (reason === 'emptied' ? count * readsForEach : count)

const maxAdvice = 20

/** What to do for more hits, the worst first. */
export const adviceFor = (
  lost: readonly LostHits[],
  limits: CacheLimits,
  descriptions: readonly Descriptions[] = [],
): readonly Advice[] =>
  [...lost.flatMap((one) => adviceOn(one, limits)), ...descriptions.flatMap(adviceOnDescriptions)]
    .sort((first, second) => weight(second) - weight(first))
    .slice(0, maxAdvice)
