/** `rfc-shared-cache` does all that RFC 9111 allows a shared cache; `safe` is narrower (docs/caching.md lists how). */
export type CacheProfile = 'safe' | 'rfc-shared-cache'

/** What the operator says about one route, for where the upstream says nothing. */
export type CacheRule = {
  readonly ttlMs: number
  readonly staleWhileRevalidateMs: number
  readonly staleIfErrorMs: number
  /** The rule wins over what the upstream states; `private` and Set-Cookie still keep a response out of the public part. */
  readonly override: boolean
  /** Lifetime of 404 and 410; 0 = never stored. */
  readonly negativeTtlMs: number
  readonly scope: 'public' | 'credential'
}

export type CachePolicy = {
  readonly profile: CacheProfile
  readonly rule: CacheRule | undefined
  /** Request fields (lower case) whose names look like credentials and that are none; all others that look so count. */
  readonly harmlessFields?: readonly string[]
  /** Names of cookies, `*` at the end for any rest, that make no difference to an answer (identity-cookies.ts). */
  readonly harmlessCookies?: readonly string[]
}
