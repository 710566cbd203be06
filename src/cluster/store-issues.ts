import type { Config } from '../config/config.ts'

export type StoreIssue = { readonly state: 'fault' | 'warning' | 'ok'; readonly text: string }

const timeoutMs = 5_000
const commandMs = 2_000
const maxReplyBytes = 1024 * 1024

/** A line of INFO. */
const factOf = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Why no command was answered, and what to do. */
const connectFault = (host: string, error: unknown): string => {
  const message = messageOf(error)
  if (/NOAUTH|WRONGPASS/.test(message))
    return `${host} refuses the login (${message.split(' ', 1)[0]}): write user and password into cache.shared.url, redis://user:password@host:6379`
  return `${host} does not respond (${message.slice(0, 100)}): start it, or correct cache.shared.url`
}

const policyIssue = (info: string): StoreIssue => {
  const policy = factOf(info, 'maxmemory_policy') ?? 'unknown'
  if (/^volatile-/.test(policy)) return { state: 'ok', text: `maxmemory-policy ${policy}` }
  const remedy = 'set maxmemory-policy volatile-lru'
  return policy === 'noeviction'
    ? {
        state: 'warning',
        text: `maxmemory-policy is noeviction: when it is full, nothing is stored; ${remedy}`,
      }
    : {
        state: 'fault',
        text: `maxmemory-policy is ${policy}, which removes coordination data too: ${remedy}`,
      }
}

const infoIssues = (info: string): readonly StoreIssue[] => [
  {
    state: 'ok',
    text: `version ${factOf(info, 'valkey_version') ?? factOf(info, 'redis_version') ?? 'unknown'}`,
  },
  policyIssue(info),
  ...(factOf(info, 'maxmemory') === '0'
    ? [
        {
          state: 'warning',
          text: 'maxmemory is 0: it grows until the machine has no memory left; set it',
        } as const,
      ]
    : []),
  ...(factOf(info, 'role') === 'slave'
    ? [
        {
          state: 'fault',
          text: 'it is a replica, which refuses writes: name the master in cache.shared.url',
        } as const,
      ]
    : []),
]

/** Connects to the Redis of a configuration as the gateway does, and uses what the gateway uses. Never throws; ends in bounded time. */
export const storeIssues = async ({ cache: { shared } }: Config): Promise<readonly StoreIssue[]> => {
  if (!shared.url.isSet) return []
  const { connect } = await import('./redis/connections.ts')
  const url = shared.url.reveal()
  const { host } = new URL(url)
  const { ca, cert, key, ...tls } = shared.tls
  let trouble: unknown = new Error('no connection in time')
  let connected: (isUp: boolean) => void = () => undefined
  const connection = connect(
    {
      url,
      cluster: shared.cluster,
      tls: { ...tls, ca: ca.reveal(), cert: cert.reveal(), key: key.reveal() },
      timeoutMs: commandMs,
      maxReplyBytes,
      troubled: (error) => {
        trouble = error
        connected(false)
      },
    },
    (state) => connected(state === 'up'),
  )
  try {
    const isUp = await new Promise<boolean>((resolve) => {
      connected = resolve
      setTimeout(resolve, timeoutMs, false).unref()
    })
    if (!isUp) return [{ state: 'fault', text: connectFault(host, trouble) }]
    const issues = [...infoIssues(await connection.info())]
    const name = `{${shared.prefix}}:doctor`
    try {
      await connection.set(name, '1', 'PX', timeoutMs)
      await connection.getrange(name, 0, 0)
      await connection.eval('return redis.call("GET", KEYS[1])', 1, name)
      await connection.pttl(name)
      await connection.publish(name, '')
      await connection.del(name)
    } catch (error) {
      const text = `the user of cache.shared.url may not do what is needed (${messageOf(error).slice(0, 160)}): give it the rights of docs/scale.md`
      issues.push({ state: 'fault', text })
    }
    return issues.map(({ state, text }) => ({ state, text: `${host}: ${text}` }))
  } catch (error) {
    return [{ state: 'fault', text: connectFault(host, error) }]
  } finally {
    connection.disconnect()
  }
}
