import type { CookieTable } from '../cache/cookies.ts'
import {
  type CachePolicy,
  type CacheRule,
  type FeedLifetime,
  strictestPolicy,
} from '../cache/decide-caching.ts'
import type { ServiceConfig } from '../config/config.ts'
import { firstRules } from '../config/rule-match.ts'
import type { Contract } from '../service/contract.ts'

/** Headers of clients that `access` keeps from the upstream: no response depends on them. */
export const headersKeptByAccess = ({ access }: Pick<ServiceConfig, 'access'>): readonly string[] => [
  ...(access?.apiKeys === undefined ? [] : [access.apiKeys.header]),
  ...Object.values(access?.jwt?.forward ?? {}),
]

/** The cache rules of a service, by method and path. */
export const policiesByRule = (
  service: Pick<ServiceConfig, 'cache' | 'access'>,
  feedLifetime: FeedLifetime | undefined,
  cookieTable: CookieTable,
): Contract['policyFor'] => {
  const { rules, harmlessFields, ...cache } = service.cache
  const settings = {
    ...cache,
    harmlessHeaders: [...harmlessFields, ...headersKeptByAccess(service)],
    harmlessResponseHeaders: harmlessFields,
    feedLifetime,
    cookieTable,
  }
  const none: CachePolicy = { ...settings, rule: undefined }
  const byRule = new Map<CacheRule, CachePolicy>(rules.map((rule) => [rule, { ...settings, rule }]))
  return (method, path) => {
    const first = firstRules(rules, method, path)
    if (first.length > 1) return strictestPolicy(new Set(first), settings)
    const [rule] = first
    return (rule && byRule.get(rule)) ?? none
  }
}
