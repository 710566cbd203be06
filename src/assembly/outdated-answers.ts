import type { CachePolicy } from '../cache/policy.ts'
import { sameSettings } from '../config/same-settings.ts'
import type { BuiltService } from './build-service.ts'
import { decideAdoption } from './decide-adoption.ts'
import type { Generation } from './generation.ts'

/** Of what a service has stored after a reload: `keep` all, `drop` all, or `compare` the rule of each target. */
type Verdict =
  | { readonly kind: 'keep' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'compare'; readonly from: BuiltService; readonly to: BuiltService }

const methods = ['GET', 'HEAD'] as const

const samePolicy = (a: CachePolicy, b: CachePolicy): boolean => sameSettings(a, b)

const verdictFor = (from: BuiltService, last: Generation, next: Generation): Verdict => {
  const to = next.built.find(({ config }) => config.name === from.config.name)
  if (to === undefined) return { kind: 'drop' }
  const adoption = decideAdoption(
    { service: from.config, limits: last.config.limits },
    { service: to.config, limits: next.config.limits },
  )
  if (adoption === 'service') return { kind: 'keep' }
  return adoption === 'rules' ? { kind: 'compare', from, to } : { kind: 'drop' }
}

/**
 * Which stored answers must go when `next` takes the place of `last`: lifetimes are worked out when an answer is stored, so
 * one that was stored under another rule would live by it. All of a service go when more than its rules has changed,
 * because they may hold what the new one would have answered otherwise.
 */
export const outdatedAnswers = (
  last: Generation,
  next: Generation,
): ((service: string, target: string) => boolean) => {
  const verdicts = new Map(last.built.map((from) => [from.config.name, verdictFor(from, last, next)]))
  return (service, target) => {
    const verdict = verdicts.get(service)
    if (verdict === undefined || verdict.kind === 'drop') return true
    if (verdict.kind === 'keep') return false
    const path = target.split('?', 1)[0] ?? ''
    const { from, to } = verdict
    return !methods.every((method) =>
      samePolicy(from.contract.policyFor(method, path), to.contract.policyFor(method, path)),
    )
  }
}
