/** A cookie that is known, and what follows for responses. */
export type CookieRow = {
  /** For people. `harmless`: set by a browser script or a CDN, and no server reads it. */
  readonly meaning: string
  /** In lower case; `*` at the end stands for any rest. */
  readonly names: readonly string[]
  /** It identifies the caller, whatever the configuration lists as harmless. */
  readonly isIdentifying?: true
  /** Equal in many clients. */
  readonly isOfMany?: true
  /** Does it say the same as no cookie? `pair`: name and value. */
  isEmpty?(pair: string): boolean
}

/** The row of a cookie, by its name in lower case. */
export type CookieTable = (name: string) => CookieRow

const harmless = (...names: readonly string[]): CookieRow => ({ meaning: 'harmless', names })

/** Cookies that no program behind the gateway reads. */
const generalRows: readonly CookieRow[] = [
  // Analytics and advertising.
  harmless('_ga', '_ga_*', '_gid', '_gat', '_gat_*', '_gcl_*', '__utm*', '_fbp', '_fbc', '_ttp', '_uet*'),
  harmless('_clck', '_clsk', '_hj*', '_pk_*', '_dd_s', 'sbjs_*', 'tk_ai'),
  // CDN.
  harmless('__cf_bm', 'cf_clearance'),
  // Consent: CookieYes, Complianz, Borlabs, Cookiebot and OneTrust.
  harmless('cookieconsent', 'optanonconsent', 'optanonalertboxclosed', 'cookielawinfo-*'),
  harmless('viewed_cookie_policy', 'cookieyes-consent', 'cmplz_*', 'borlabs-cookie'),
]

/** A request with such a cookie gets no shared response. */
const unknown: CookieRow = { meaning: 'unknown', names: [] }

const nothing = harmless()

/** The general rows and those of a program; the first one that fits counts, and one without `*` before the others. */
export const createCookieTable = (rows: readonly CookieRow[]): CookieTable => {
  const named = [...generalRows, ...rows].flatMap((row) => row.names.map((name) => ({ name, row })))
  const exact = new Map(named.map(({ name, row }) => [name, row]))
  const prefixes = named
    .filter(({ name }) => name.endsWith('*'))
    .map(({ name, row }) => ({ prefix: name.slice(0, -1), row }))
  return (name) => exact.get(name) ?? prefixes.find(({ prefix }) => name.startsWith(prefix))?.row ?? unknown
}

const generalTable = createCookieTable([])

const none: readonly string[] = []

const fits = (pattern: string, name: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern

const nameOf = (pair: string): string => (pair.split('=', 1)[0] ?? '').trim()

/** Which cookies make a difference to the responses of a service. */
export type CookiePolicy = {
  /** Of the programs that may be behind it; absent: those that no program reads. */
  readonly cookieTable?: CookieTable
  /** Names of cookies that make no difference to a response; `*` at the end stands for any rest. */
  readonly harmlessCookies?: readonly string[]
}

const rowOf = (
  pair: string,
  { cookieTable = generalTable, harmlessCookies = none }: CookiePolicy,
): CookieRow => {
  const name = nameOf(pair)
  if (name === '') return nothing
  const row = cookieTable(name.toLowerCase())
  if (row.isEmpty?.(pair) === true) return nothing
  if (row.meaning === 'harmless' || row.isIdentifying === true) return row
  return harmlessCookies.some((pattern) => fits(pattern, name)) ? nothing : row
}

/** May the response depend on the Cookie header? */
export const carriesIdentity = (cookie: string, policy: CookiePolicy): boolean =>
  cookie.split(';').some((pair) => rowOf(pair, policy).meaning !== 'harmless')

/** The cookies on which it may depend, without their values. */
export const identityCookies = (
  cookie: string,
  policy: CookiePolicy,
): readonly (Pick<CookieRow, 'meaning' | 'isOfMany'> & { readonly name: string })[] =>
  cookie
    .split(';')
    .map((pair) => ({ ...rowOf(pair, policy), name: nameOf(pair) }))
    .filter(({ meaning }) => meaning !== 'harmless')
