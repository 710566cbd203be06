import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { Cluster, Command, Redis } from 'ioredis'
import { connectorFor, type ReplyLimits } from './connector.ts'

/** Why the store failed: the first word of its error, the code of the connection, `timeout`, or `other`. */
export type StoreTrouble = (typeof troubleCodes)[number] | 'timeout' | 'other'

const troubleCodes = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'NOAUTH',
  'WRONGPASS',
  'NOPERM',
  'READONLY',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  'LOADING',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'CERT_HAS_EXPIRED',
  // Made here: the reply is not valid.
  'MALFORMED',
  // Not signed with the key of this instance.
  'UNSIGNED',
] as const

/** Undefined: there is no connection; its loss was reported already. */
const troubleOf = (error: Error): StoreTrouble | undefined => {
  if (/^Connection is closed|^Stream isn't writeable|^Cluster isn't ready/.test(error.message))
    return undefined
  if (error.message.startsWith('Command timed out')) return 'timeout'
  const code = 'code' in error ? error.code : undefined
  // The first word of the error, also inside an error of a script and in a repeated one.
  const text = error.message.replace(/^Too many Cluster redirections\. Last error: \w+: /, '')
  return troubleCodes.find((trouble) => trouble === code || text.startsWith(trouble)) ?? 'other'
}

/** Classifies an error of the store and reports it. */
export type Troubled = (error: unknown) => void

const reportEveryMs = 60_000

/** Counts errors, and logs each kind at most once a minute: every command may fail. */
export const createErrorReporter = (
  monotonic: () => number,
  report: (trouble: StoreTrouble, isNews: boolean) => void,
): Troubled => {
  const reportedAt = new Map<StoreTrouble, number>()
  return (error) => {
    const trouble = error instanceof Error ? troubleOf(error) : 'other'
    if (trouble === undefined) return
    const isNews = monotonic() - (reportedAt.get(trouble) ?? Number.NEGATIVE_INFINITY) >= reportEveryMs
    if (isNews) reportedAt.set(trouble, monotonic())
    report(trouble, isNews)
  }
}

const slots = 16_384

const isSlot = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < slots

/** A name and a port; no name if the node does not give it. */
const isNode = (value: unknown): boolean =>
  Array.isArray(value) && Number.isInteger(value[1]) && value[1] > 0 && value[1] < 65_536

/** The number of slots in a row of CLUSTER SLOTS; undefined for any other value. */
const slotsIn = (row: unknown): number | undefined => {
  if (!Array.isArray(row)) return undefined
  const [first, last, ...nodes] = row as readonly unknown[]
  return isSlot(first) && isSlot(last) && first <= last && nodes.every(isNode) ? last - first + 1 : undefined
}

/**
 * Checks a node's reply to CLUSTER SLOTS. ioredis walks from the first slot of each row to the last one, whatever they are, and
 * its errors there end the process. No slot may be named twice.
 */
const checkedSlots = (reply: unknown): unknown => {
  if (typeof reply === 'string') return reply
  let named = 0
  if (Array.isArray(reply)) for (const row of reply) named += slotsIn(row) ?? Number.NaN
  if (Array.isArray(reply) && named <= slots) return reply
  throw new Error('MALFORMED slots')
}

export type RedisConnectionOptions = ReplyLimits & {
  /** redis:// or rediss://, of one server or of any node of a cluster. */
  readonly url: string
  readonly cluster: boolean
  /** For rediss://; PEM texts, '' where the usual ones hold. */
  readonly tls: {
    readonly ca: string
    readonly cert: string
    readonly key: string
    readonly serverName: string
  }
  readonly troubled: Troubled
}

/** A silent connection is closed after these many timeouts, before the kernel gives it up. */
const silentTimeouts = 3

Command.setReplyTransformer('cluster', checkedSlots)

/** A connection for one purpose, so that a large value never stands before a short command. */
export type RedisConnection = Redis | Cluster

/** Runs a script by its digest, and sends its text only where the server does not have it. */
export type RunScript = (
  keys: readonly string[],
  argv: readonly (string | number | Buffer)[],
) => Promise<unknown>

/** Settings that ioredis takes from the URL for the first node only; the other nodes of a cluster need them too. */
const credentialsOf = (url: URL) => ({
  ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
  ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
})

/** Undefined: in the clear. The name is sent as well as checked; none is sent for an address (RFC 6066 §3). */
const tlsOf = (url: URL, { ca, cert, key, serverName }: RedisConnectionOptions['tls']) => {
  if (url.protocol !== 'rediss:') return {}
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const name = serverName === '' && isIP(host) === 0 ? host : serverName
  const settings = Object.entries({ ca, cert, key, servername: name }).filter(([, text]) => text !== '')
  return { tls: Object.fromEntries(settings) }
}

/** Commands are neither queued nor sent again: a late one is useless, and none may run twice. */
const nodeOptions = ({ timeoutMs, maxReplyBytes, tls, url }: RedisConnectionOptions) => ({
  Connector: connectorFor('calls', { timeoutMs, maxReplyBytes }),
  // Its replies have five types, and only connections that subscribed receive messages.
  protocol: 2 as const,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  connectTimeout: timeoutMs * 2,
  commandTimeout: timeoutMs,
  socketTimeout: timeoutMs * silentTimeouts,
  connectionName: 'trellis',
  // CLIENT SETINFO would need another permission (docs/scale.md).
  disableClientInfo: true,
  // A master that became a replica keeps its connections; its address leads to the new master.
  reconnectOnError: ({ message }: Error) => message.includes('READONLY'),
  ...credentialsOf(new URL(url)),
  ...tlsOf(new URL(url), tls),
})

/** Before the server is looked for again. */
export const pauseMs = (attempts: number): number => Math.min(50 * attempts, 500)

const common = { lazyConnect: true, enableOfflineQueue: false } as const

/**
 * No pipelines: those of a cluster are sent again as a whole, each time for as long as a command may take, hold up what comes
 * after them, and end the process when they are redirected (ASK) once too often.
 */
const clusterOptions = (options: RedisConnectionOptions) => ({
  ...common,
  redisOptions: nodeOptions(options),
  clusterRetryStrategy: pauseMs,
  slotsRefreshTimeout: options.timeoutMs * 2,
  // Commands do not wait for a lost node, and are not sent again if it may have carried them out.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  // A command for keys that are moving to another node is sent again, as long as a command may take.
  maxRedirections: 4,
  retryDelayOnTryAgain: options.timeoutMs / 4,
})

const openCluster = (options: RedisConnectionOptions): Cluster => {
  const cluster = new Cluster([options.url], clusterOptions(options))
  // While a connection to a node is being opened, its first command waits and all others are refused. Until the cluster is ready,
  // that first command is the check of ioredis whether it is.
  const connectMasters = (): void => {
    if (cluster.status !== 'ready') return
    for (const node of cluster.nodes('master')) {
      if (node.status === 'wait') node.connect().catch(() => undefined)
    }
  }
  cluster.on('ready', connectMasters)
  cluster.on('+node', (node: Redis) => {
    const { asking } = node
    // ioredis does not handle a rejected ASKING, which would end the process; the command after it fails as well.
    node.asking = () => asking.call(node).catch(() => 'OK')
    // The node was found for a command, which has to be sent first.
    setImmediate(connectMasters)
  })
  return cluster
}

/** Opens a connection that looks for its server until it is closed. `changed` is called when the server is found or lost. */
export const connect = (
  options: RedisConnectionOptions,
  changed: (state: 'up' | 'down') => void,
): RedisConnection => {
  const connection: RedisConnection = options.cluster
    ? openCluster(options)
    : new Redis(options.url, {
        ...common,
        ...nodeOptions(options),
        enableAutoPipelining: true,
        retryStrategy: pauseMs,
      })
  let last: 'up' | 'down' | undefined
  // Each failed attempt to connect emits `close` again.
  const changeTo = (state: 'up' | 'down') => (): void => {
    if (state === last) return
    last = state
    changed(state)
  }
  connection.on('ready', changeTo('up'))
  connection.on('close', changeTo('down'))
  connection.on('error', options.troubled)
  connection.connect().catch(() => undefined)
  return connection
}

export const scriptOn = (connection: RedisConnection, text: string): RunScript => {
  const digest = createHash('sha1').update(text).digest('hex')
  return async (keys, argv) => {
    try {
      return await connection.evalsha(digest, keys.length, ...keys, ...argv)
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return connection.eval(text, keys.length, ...keys, ...argv)
    }
  }
}
