import { X509Certificate } from 'node:crypto'
import { createServer, isIP } from 'node:net'
import { availableParallelism, totalmem } from 'node:os'
import type { StatusReport } from '../admin/status-report.ts'
import { storeIssues } from '../cluster/store-issues.ts'
import { type Config, changesOf } from '../config/config.ts'
import { checksOf } from './contracts.ts'
import { allUpstreamIssues, upstreamFacts } from './upstream-issues.ts'

/** What was looked at, what is there and, where that is no good, what to do. */
export type Check = {
  readonly state: 'fault' | 'warning' | 'note' | 'ok'
  readonly subject: string
  readonly text: string
}

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`

/** Beside the cache: docs/sizing.md. */
const besidesBytes = 200 * 1_048_576

const memoryCheck = ({ cache: { maxBytes } }: Config): Check => {
  const constrained = process.constrainedMemory?.() ?? 0
  const available = constrained > 0 && constrained < totalmem() ? constrained : totalmem()
  const needed = Math.max(2 * maxBytes, maxBytes + besidesBytes)
  const text = `cache.maxBytes is ${mebibytes(maxBytes)}, for which ${mebibytes(needed)} are needed, and there are ${mebibytes(available)}`
  return needed <= available
    ? { state: 'ok', subject: 'memory', text }
    : {
        state: 'fault',
        subject: 'memory',
        text: `${text}: write cache.maxBytes: ${Math.max(16, Math.floor(available / 2_097_152))}MiB`,
      }
}

const workersCheck = ({ workers }: Config): Check => {
  const cores = availableParallelism()
  const text = `${workers} configured, and there are ${cores} cores`
  return workers > cores
    ? { state: 'warning', subject: 'workers', text: `${text}: write workers: 0 for one for each core` }
    : { state: 'ok', subject: 'workers', text }
}

/** The error code of the system; undefined: the port can be opened. */
const portTrouble = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code ?? 'no code'))
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })

/** What the admin side of a running gateway says; undefined without one, or without its token. */
const askAdmin = async (
  { admin: { host, port, token } }: Config,
  path: '/livez' | '/status',
): Promise<unknown> => {
  const address =
    host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : isIP(host) === 6 ? `[${host}]` : host
  try {
    const response = await fetch(`http://${address}:${port}${path}`, {
      signal: AbortSignal.timeout(2_000),
      headers: token.isSet ? { authorization: `Bearer ${token.reveal()}` } : {},
    })
    const content: unknown = await response.json()
    return response.ok ? content : undefined
  } catch {
    return undefined
  }
}

/** Requests that a running gateway has refused for limits of the configuration, counted by reason. */
const limitChecks = async (config: Config): Promise<readonly Check[]> => {
  const limited = config.services.filter((service) => checksOf(service)?.limitCodes !== undefined)
  const status = limited.length === 0 ? undefined : await askAdmin(config, '/status')
  const { refusals = [] } = (status ?? {}) as Partial<Pick<StatusReport, 'refusals'>>
  return limited.flatMap((service): Check[] => {
    const { name } = service
    const counts = (checksOf(service)?.limitCodes ?? []).flatMap((code) => {
      const rows = refusals.filter((refusal) => refusal.service === name && refusal.code === code)
      return rows.length === 0 ? [] : [`${code} ${rows.reduce((sum, { count }) => sum + count, 0)}`]
    })
    const text = `refused by the limits since the start: ${counts.join(', ')}; where these are your own clients, raise the limit`
    return counts.length === 0 ? [] : [{ state: 'note', subject: name, text }]
  })
}

const portRemedies: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there: stop it, or write another port',
  EACCES: 'this user may not open it: write a port from 1024 on, or grant CAP_NET_BIND_SERVICE',
  EADDRNOTAVAIL: 'that is no address of this machine: 0.0.0.0 means all addresses',
  ENOTFOUND: 'the name cannot be resolved: write an address',
}

const portChecks = async (config: Config): Promise<readonly Check[]> => {
  const running = (await askAdmin(config, '/livez')) !== undefined
  const checks = (['listen', 'admin'] as const).map(async (side): Promise<Check> => {
    const { host, port } = config[side]
    const [subject, where] = [`${side}.port`, `${host}:${port}`]
    const trouble = port === 0 ? undefined : await portTrouble(host, port)
    if (trouble === undefined) return { state: 'ok', subject, text: `${where} is free` }
    if (trouble === 'EADDRINUSE' && running)
      return { state: 'ok', subject, text: `${where} is in use, and a gateway answers at the admin side` }
    return { state: 'fault', subject, text: `${where}: ${portRemedies[trouble] ?? trouble} (${trouble})` }
  })
  return Promise.all(checks)
}

const dayMs = 86_400_000
const soonDays = 14

const certificateCheck = (subject: string, pem: string, hosts: readonly string[]): Check => {
  const certificate = new X509Certificate(pem)
  const days = Math.floor((Date.parse(certificate.validTo) - Date.now()) / dayMs)
  if (days < 0)
    return { state: 'fault', subject, text: `expired on ${certificate.validTo}: renew it, and reload` }
  const other = hosts.find((host) =>
    isIP(host) === 0 ? certificate.checkHost(host) === undefined : certificate.checkIP(host) === undefined,
  )
  if (other !== undefined)
    return {
      state: 'fault',
      subject,
      text: `does not name ${other}, which clients use (${certificate.subjectAltName ?? 'no names'}): get one that does, or correct publicUrl`,
    }
  return days < soonDays
    ? { state: 'warning', subject, text: `expires on ${certificate.validTo}: renew it, and reload` }
    : { state: 'ok', subject, text: `valid for ${days} days` }
}

const certificateChecks = ({ listen: { tls }, publicUrl }: Config): readonly Check[] => {
  if (!tls.cert.isSet) return []
  const { hostname, protocol } = new URL(publicUrl)
  const host = hostname.replace(/^\[|\]$/g, '')
  const hasOwn = tls.certificates.some(({ hosts }) => hosts.includes(host))
  return [
    certificateCheck('listen.tls.cert', tls.cert.reveal(), protocol === 'https:' && !hasOwn ? [host] : []),
    ...tls.certificates.map(({ cert, hosts }, index) =>
      certificateCheck(
        `listen.tls.certificates[${index}]`,
        cert.reveal(),
        hosts.filter((name) => !name.startsWith('*')),
      ),
    ),
  ]
}

const upstreamChecks = async (config: Config): Promise<readonly Check[]> => {
  const issues = await allUpstreamIssues(config)
  const facts = new Map(
    await Promise.all(
      config.services.map(async (service) => [service, await upstreamFacts(service, config)] as const),
    ),
  )
  return config.services.flatMap((service): Check[] => {
    const subject = `upstream of ${service.name}`
    const serviceIssues = issues.filter((issue) => issue.service === service.name)
    const { withoutChanges, hints } = checksOf(service) ?? {}
    const ofChanges: Check[] =
      withoutChanges !== undefined && changesOf(service) === undefined
        ? [{ state: 'note', subject: `changes of ${service.name}`, text: withoutChanges }]
        : []
    const responses: Check[] =
      serviceIssues.length > 0
        ? serviceIssues.map(({ text }) => ({ state: 'fault', subject, text }))
        : [{ state: 'ok', subject, text: 'answers, and fits the configuration' }]
    const allowed = (hints ?? []).map((text): Check => ({ state: 'note', subject: service.name, text }))
    const said = (facts.get(service) ?? []).map((text): Check => ({ state: 'note', subject, text }))
    return [...responses, ...said, ...ofChanges, ...allowed]
  })
}

/** Looks at this machine, and at all that the configuration names. Never throws; ends in bounded time. */
export const examine = async (config: Config): Promise<readonly Check[]> => {
  const [ports, upstreams, refused, store] = await Promise.all([
    portChecks(config),
    upstreamChecks(config),
    limitChecks(config),
    storeIssues(config),
  ])
  return [
    { state: 'ok', subject: 'Node', text: process.versions.node },
    workersCheck(config),
    memoryCheck(config),
    ...ports,
    ...certificateChecks(config),
    ...upstreams,
    ...refused,
    ...store.map(({ state, text }) => ({ state, subject: 'cache.shared', text })),
  ]
}
