import type { User } from './entry.ts'

/** The user of a request. An unknown user or a wrong password is anonymous, as WordPress 6.9 treats them. */
export type Caller = { readonly role: 'anonymous' | 'reader' | 'admin'; readonly userId: number }

const anonymous: Caller = { role: 'anonymous', userId: 0 }

/** The password of both demo accounts; there is nothing behind them but the demo. */
const password = 'trellis-demo'
const roles = { admin: 'admin', reader: 'reader' } as const

/** The user that sent a request. A wrong password or another scheme makes the request anonymous; it is no error. */
export const callerOf = (authorization: string | undefined, users: ReadonlyMap<number, User>): Caller => {
  if (authorization?.slice(0, 6).toLowerCase() !== 'basic ') return anonymous
  const decoded = Buffer.from(authorization.slice(6).trim(), 'base64').toString('utf8')
  const colon = decoded.indexOf(':')
  const name = decoded.slice(0, Math.max(colon, 0))
  if (decoded.slice(colon + 1) !== password || (name !== 'admin' && name !== 'reader')) return anonymous
  const user = [...users.values()].find(({ slug }) => slug === name)
  return user === undefined ? anonymous : { role: roles[name], userId: user.id }
}
