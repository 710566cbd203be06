import type { ServiceConfig } from '../../config/config.ts'
import { isPattern, matchesWrite } from '../../config/rule-match.ts'
import type { Contract, NoChangeClaim } from '../../service/contract.ts'
import { splitPhpName } from '../arguments/php-query.ts'

/** What must hold of the response too. */
type ConfirmedBy = (status: number, setCookies: readonly string[]) => boolean

/** A POST request that changes nothing that a cached reader is shown. */
export type NoChangeRequest = {
  /** The first WordPress, or plugin, of which it is true, and why no response shows a change. */
  readonly since: string
  readonly why: string
  /** Paths below the root of the site. The URL has no query: PHP would read parameters from it too. */
  readonly paths: readonly string[]
  /** Of its content, without parameters. */
  readonly mediaType: string
  /** Longer contents are not read. */
  readonly maxBytes: number
  readonly isRight: (content: Buffer) => boolean
  readonly confirmedBy?: ConfirmedBy
}

type FormParameter = { readonly name: string; readonly value: string }

/** The parameters of a form, decoded; none when one of them may be read in another way. */
const formOf = (content: Buffer): readonly FormParameter[] => {
  const text = content.toString('latin1')
  // PHP can be told to separate parameters by semicolons.
  if (text.includes(';')) return []
  try {
    return text.split('&').map((parameter) => {
      const [name = '', value = '', ...more] = parameter.split('=')
      if (more.length > 0) throw new URIError(parameter)
      const decoded = [name, value].map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
      return { name: decoded[0] ?? '', value: decoded[1] ?? '' }
    })
  } catch {
    return []
  }
}

/** What WordPress's own scripts send with a heartbeat; its `wp_autosave` saves. Every other name may belong to a plugin. */
const heartbeatName =
  /^(?:action|_nonce|interval|screen_id|has_focus|data\[(?:wp-refresh-post-lock|wp-refresh-post-nonces|wp-refresh-metabox-loader-nonces|wp-check-locked-posts)\](?:\[\w{0,40}\]){1,2})$/

const isHeartbeat = (content: Buffer): boolean => {
  const form = formOf(content)
  const actions = form.filter(({ name }) => name === 'action')
  return (
    actions.length === 1 &&
    actions[0]?.value === 'heartbeat' &&
    form.every(({ name }) => heartbeatName.test(name))
  )
}

/** The names in the form of wp-login.php; with `action` it does other things than a login. */
const loginName = /^(?:log|pwd|wp-submit|redirect_to|testcookie|rememberme)$/

const isLogin = (content: Buffer): boolean => {
  const form = formOf(content)
  return form.some(({ name }) => name === 'log') && form.every(({ name }) => loginName.test(name))
}

/** With a session WordPress redirects, or sets more cookies than the one that tests whether there may be cookies. */
const isRefusedLogin: ConfirmedBy = (status, setCookies) =>
  status === 200 && setCookies.every((line) => /^wordpress_test_cookie=[^,]*$/.test(line))

const urlencoded = 'application/x-www-form-urlencoded'

/**
 * WordPress alone writes nothing here that a response shows. `cache.harmlessWrites` names each: a plugin may write in the same
 * request, and only the administrator knows the plugins.
 */
export const namedRequests = {
  heartbeat: {
    since: 'WordPress 3.6',
    why: 'sets the lock of an editor, which no response shows, and reads',
    paths: ['/wp-admin/admin-ajax.php'],
    mediaType: urlencoded,
    maxBytes: 16_384,
    isRight: isHeartbeat,
  },
  'failed-login': {
    since: 'WordPress 4.0',
    why: 'WordPress writes a session only when the password is right',
    paths: ['/wp-login.php'],
    mediaType: urlencoded,
    maxBytes: 16_384,
    isRight: isLogin,
    confirmedBy: isRefusedLogin,
  },
} as const satisfies Readonly<Record<string, NoChangeRequest>>

/** Does the body ask for nothing but GraphQL queries? The contract `graphql` knows. */
export type IsGraphqlQuery = (content: Buffer) => boolean

/** For these no name is needed: the same by GET runs the same code, and is a read for every cache. */
export const unnamedRequests = (
  isGraphqlQuery: IsGraphqlQuery,
): Readonly<Record<string, NoChangeRequest>> => ({
  'GraphQL query': {
    since: 'WPGraphQL 0.1',
    why: 'a document that holds queries only reads (GraphQL §2.3), and runs the same code by GET',
    paths: ['/graphql', '/graphql/'],
    mediaType: 'application/json',
    maxBytes: 65_536,
    isRight: isGraphqlQuery,
  },
})

/** Where the site is, by the path of its interface or of WPGraphQL: '' for `/wp-json`; undefined when that path has another name. */
export const rootOf = (interfacePath: string): string | undefined =>
  /^(.*?)(?:\/index\.php)?\/(?:(?:wp|site)-json|graphql)$/.exec(interfacePath)?.[1]

/** Longer forms are not read, and count as writes. */
const longestForm = 16 * 1024

/** WordPress takes these for the route and the method of its interface, also from a form behind any URL. */
const rerouting: readonly string[] = ['rest_route', '_method']

/** The name of a parameter as PHP reads it; undefined when it cannot be decoded. */
const phpName = (parameter: string): string | undefined => {
  try {
    const name = decodeURIComponent((parameter.split('=', 1)[0] ?? '').replaceAll('+', ' '))
    return splitPhpName(name)?.name.toLowerCase() ?? ''
  } catch {
    return undefined
  }
}

/** Does a form give a value to one of the names, in any spelling that PHP reads so? */
const mayHaveName = (form: string, names: readonly string[]): boolean => {
  const refusedNames = new Set(names.map((name) => phpName(name)))
  return form.split(/[&;]/).some((parameter) => {
    const name = phpName(parameter)
    return name === undefined || refusedNames.has(name)
  })
}

/** For PHP a form counts more than the URL, so it must not name the parameters of the URL again. PHP reads none from JSON. */
const ofPattern = (text: string, query: readonly { readonly name: string }[]): NoChangeClaim => {
  const names = [...query.map(({ name }) => name), ...rerouting]
  return {
    by: 'harmless',
    text,
    contentRule: (mediaType) => {
      if (mediaType === 'application/json') return 'any'
      if (mediaType !== urlencoded) return undefined
      return { maxBytes: longestForm, isRight: (form) => !mayHaveName(form.toString('latin1'), names) }
    },
  }
}

const ofTable = (text: string, { mediaType: expected, ...rule }: NoChangeRequest): NoChangeClaim => ({
  by: 'table',
  text: `${text} (${rule.why}; since ${rule.since})`,
  contentRule: (mediaType) => (mediaType === expected ? rule : undefined),
  confirmedBy: rule.confirmedBy,
})

const isOf = ({ paths }: NoChangeRequest, roots: readonly string[], path: string): boolean =>
  roots.some((root) => paths.some((requestPath) => root + requestPath === path))

/** What is known of a request to a service: from `cache.harmlessWrites`, and of those that reach a WordPress from the table. */
export const noChangeClaimsOf = (
  config: Pick<ServiceConfig, 'contract' | 'cache'> & { readonly upstream: { readonly basePath: string } },
  isGraphqlQuery: IsGraphqlQuery,
): Contract['noChangeClaim'] => {
  const { cache, contract, upstream } = config
  const patterns = cache.harmlessWrites.filter(isPattern)
  const names = cache.harmlessWrites.flatMap((rule) => (isPattern(rule) ? [] : [rule.text]))
  if (contract !== 'open' && patterns.length === 0) return undefined
  const table: readonly (readonly [string, NoChangeRequest])[] = [
    ...Object.entries(unnamedRequests(isGraphqlQuery)),
    ...names.map((name) => [name, namedRequests[name]] as const),
  ]
  const basePath = upstream.basePath === '/' ? '' : upstream.basePath
  return (method, path, query, interfaces) => {
    const pattern = patterns.find((match) => matchesWrite(match, method, path, query))
    if (pattern !== undefined) return ofPattern(pattern.text, pattern.query)
    if (contract !== 'open' || method !== 'POST' || query !== '') return undefined
    const roots = interfaces().flatMap((address) => rootOf(address) ?? [])
    const row = table.find(([, request]) => isOf(request, roots, basePath + path))
    return row === undefined ? undefined : ofTable(...row)
  }
}
