import type { ServiceConfig } from '../../config/config.ts'
import { isPattern, matchesWrite } from '../../config/rule-match.ts'
import type { HarmlessClaim } from '../../service/witness.ts'
import { splitPhpName } from '../arguments/php-names.ts'
import { type HarmlessRequest, namedRequests, rootOf, unnamedRequests } from './harmless-requests.ts'

/** Longer forms are not read, and count as writes. */
const longestForm = 16 * 1024
const urlencoded = 'application/x-www-form-urlencoded'

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
  const refused = new Set(names.map((name) => phpName(name)))
  return form.split(/[&;]/).some((parameter) => {
    const name = phpName(parameter)
    return name === undefined || refused.has(name)
  })
}

/** For PHP a form counts more than the URL, so it must not name the parameters of the URL again. PHP reads none from JSON. */
const ofPattern = (text: string, query: readonly { readonly name: string }[]): HarmlessClaim => {
  const names = [...query.map(({ name }) => name), ...rerouting]
  return {
    by: 'harmless',
    text,
    contentRule: (mediaType) => {
      if (mediaType === 'application/json') return 'any'
      if (mediaType !== urlencoded) return undefined
      return { mostBytes: longestForm, isRight: (form) => !mayHaveName(form.toString('latin1'), names) }
    },
  }
}

const ofTable = (text: string, { mediaType: expected, ...rule }: HarmlessRequest): HarmlessClaim => ({
  by: 'table',
  text: `${text} (${rule.why}; since ${rule.since})`,
  contentRule: (mediaType) => (mediaType === expected ? rule : undefined),
  shownBy: rule.shownBy,
})

const isOf = ({ paths }: HarmlessRequest, roots: readonly string[], path: string): boolean =>
  roots.some((root) => paths.some((one) => root + one === path))

/** What is known of a request to a service: from `cache.harmlessWrites`, and of those that reach a WordPress from the table. */
export const harmlessWritesOf = (
  config: Pick<ServiceConfig, 'contract' | 'cache'> & { readonly upstream: { readonly basePath: string } },
  /** The paths of the interfaces of WordPress at the same upstream. */
  interfaces: () => readonly string[],
): ((method: string, path: string, query: string) => HarmlessClaim | undefined) | undefined => {
  const { cache, contract, upstream } = config
  const patterns = cache.harmlessWrites.filter(isPattern)
  const named = cache.harmlessWrites.flatMap((one) => (isPattern(one) ? [] : [one.text]))
  if (contract !== 'open' && patterns.length === 0) return undefined
  const table: readonly (readonly [string, HarmlessRequest])[] = [
    ...Object.entries(unnamedRequests),
    ...named.map((name) => [name, namedRequests[name]] as const),
  ]
  const basePath = upstream.basePath === '/' ? '' : upstream.basePath
  return (method, path, query) => {
    const pattern = patterns.find((match) => matchesWrite(match, method, path, query))
    if (pattern !== undefined) return ofPattern(pattern.text, pattern.query)
    if (contract !== 'open' || method !== 'POST' || query !== '') return undefined
    const roots = interfaces().flatMap((one) => rootOf(one) ?? [])
    const row = table.find(([, request]) => isOf(request, roots, basePath + path))
    return row === undefined ? undefined : ofTable(...row)
  }
}
