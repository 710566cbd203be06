/**
 * Cookies that no service behind the gateway reads, because a browser script or the network in front sets them.
 * A closed list of harmless names, not of harmful ones: a cookie nobody thought of must not share an answer.
 */
const harmless: ReadonlySet<string> = new Set([
  '_ga',
  '_gid',
  '_gat',
  '_fbp',
  '_fbc',
  '_clck',
  '_clsk',
  '_dd_s',
  '__cf_bm',
  'cf_clearance',
  'cookieconsent',
  'optanonconsent',
  'optanonalertboxclosed',
  'wordpress_test_cookie',
])

const harmlessPrefixes: readonly string[] = [
  '_ga_',
  '_gat_',
  '_gcl_',
  '_hj',
  '_pk_',
  '_uet',
  '__utm',
  'wp-settings-',
]

const isHarmless = (pair: string): boolean => {
  const name = (pair.split('=', 1)[0] ?? '').trim().toLowerCase()
  return name === '' || harmless.has(name) || harmlessPrefixes.some((prefix) => name.startsWith(prefix))
}

/** May a Cookie field make the answer the caller's own? WordPress's login, post password and comment author cookies do. */
export const carriesIdentity = (cookie: string): boolean => !cookie.split(';').every(isHarmless)
