import type { CacheRuleConfig, SiteConfig } from './config.ts'
import type { RuleMatch } from './rule-match.ts'

const get = (...segments: readonly string[]): RuleMatch => ({
  text: `GET /${segments.join('/')}`,
  methods: ['GET', 'HEAD'],
  segments,
})

const plain = { staleWhileRevalidateMs: 0, staleIfErrorMs: 0, negativeTtlMs: 0, override: false } as const

/** Cache rules of a plant store whose section has none. Every caller has a credential, so each has answers of its own. */
export const plantsRules: readonly CacheRuleConfig[] = [
  { ...plain, match: get('plants'), ttlMs: 5_000, scope: 'credential' },
]

/**
 * Cache rules of a site whose section has none. The namespace is spelled as clients spell it: with `names: same` that is
 * the upstream's spelling, which is the neutral one only where its root ends in the neutral segment.
 */
export const siteRules = (names: SiteConfig['names'], basePath: string): readonly CacheRuleConfig[] => [
  {
    ...plain,
    match: get(names === 'wordpress' || basePath.endsWith('/site-json') ? 'site' : 'wp', 'v2', '**'),
    ttlMs: 60_000,
    staleWhileRevalidateMs: 30_000,
    staleIfErrorMs: 3_600_000,
    scope: 'public',
  },
]
