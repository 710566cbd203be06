import type { CachePolicy, CacheRule, WhileHeard } from '../cache/decide-caching.ts'
import { strictestPolicy } from '../cache/strictest-rule.ts'
import type { ServiceConfig } from '../config/config.ts'
import { firstRules } from '../config/rule-match.ts'
import type { Contract } from './contract.ts'

/** Fields of clients that `access` keeps from the upstream: no response depends on them. */
export const withheldFields = ({ access }: Pick<ServiceConfig, 'access'>): readonly string[] => [
  ...(access?.apiKeys === undefined ? [] : [access.apiKeys.header]),
  ...Object.values(access?.jwt?.forward ?? {}),
]

/** The cache rules of a service, by method and path. */
export const policiesByRule = (
  service: Pick<ServiceConfig, 'cache' | 'access'>,
  whileHeard: WhileHeard | undefined,
): Contract['policyFor'] => {
  const { rules, ...cache } = service.cache
  const harmlessFields = [...cache.harmlessFields, ...withheldFields(service)]
  const settings = { ...cache, harmlessFields, harmlessResponseFields: cache.harmlessFields, whileHeard }
  const none: CachePolicy = { ...settings, rule: undefined }
  const byRule = new Map<CacheRule, CachePolicy>(rules.map((rule) => [rule, { ...settings, rule }]))
  return (method, path) => {
    const first = firstRules(rules, method, path)
    if (first.length > 1) return strictestPolicy(new Set(first), settings)
    const [rule] = first
    return (rule && byRule.get(rule)) ?? none
  }
}
