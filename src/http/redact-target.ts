/** Parameters whose values are credentials. Names compare without case, `-` and `_`. */
const secretNames: ReadonlySet<string> = new Set([
  'accesstoken',
  'apikey',
  'auth',
  'authorization',
  'clientsecret',
  'code',
  'idtoken',
  'jwt',
  'key',
  'nonce',
  'pass',
  'passwd',
  'password',
  'pwd',
  'refreshtoken',
  'secret',
  'session',
  'sessionid',
  'sid',
  'sig',
  'signature',
  'token',
  'wpnonce',
  'xamzcredential',
  'xamzsecuritytoken',
  'xamzsignature',
  'xgoogcredential',
  'xgoogsignature',
])

const plainName = (name: string): string => {
  try {
    return decodeURIComponent(name)
      .toLowerCase()
      .replace(/[^a-z]/g, '')
  } catch {
    return ''
  }
}

/** A target as people may see it: values of parameters that are secrets by their name are hidden. */
export const redactTarget = (target: string): string => {
  const at = target.indexOf('?')
  if (at === -1) return target
  const pairs = target
    .slice(at + 1)
    .split('&')
    .map((pair) => {
      const [name = ''] = pair.split('=', 1)
      return name !== pair && secretNames.has(plainName(name)) ? `${name}=[redacted]` : pair
    })
  return `${target.slice(0, at + 1)}${pairs.join('&')}`
}
