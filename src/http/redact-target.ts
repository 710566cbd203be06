/** Ends of the names of parameters whose values are credentials: `post_password`, `access_token`. */
const secretEnds =
  /(?:pass|passwd|password|passphrase|pwd|token|secret|nonce|apikey|signature|credentials?|jwt)$/

/** Other parameters whose values are credentials. Names compare without case, `-` and `_`. */
const secretNames: ReadonlySet<string> = new Set([
  'auth',
  'authorization',
  'code',
  'key',
  'session',
  'sessionid',
  'sid',
  'sig',
])

/** A name that cannot be decoded may mean a secret to the upstream. */
const isSecret = (name: string, secrets: readonly string[]): boolean => {
  try {
    const decoded = decodeURIComponent(name.replaceAll('+', ' '))
    if (secrets.includes(decoded)) return true
    const plain = decoded.toLowerCase().replace(/[^a-z]/g, '')
    return secretEnds.test(plain) || secretNames.has(plain)
  } catch {
    return true
  }
}

/** A target without secrets: it hides the values of parameters that are secret by their name, or that the service declares as secret. */
export const redactTarget = (target: string, secrets: readonly string[] = []): string => {
  const at = target.indexOf('?')
  if (at === -1) return target
  const pairs = target
    .slice(at + 1)
    .split('&')
    .map((pair) => {
      const [name = ''] = pair.split('=', 1)
      return name !== pair && isSecret(name, secrets) ? `${name}=[redacted]` : pair
    })
  return `${target.slice(0, at + 1)}${pairs.join('&')}`
}
