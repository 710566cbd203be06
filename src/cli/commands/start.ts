import { readFile } from 'node:fs/promises'
import type { Config } from '../../config/config.ts'
import { adminUrl } from '../admin-address.ts'
import type { CliPorts, End, StartedGateway } from '../cli-ports.ts'
import { type ConfigChoice, type Loaded, readConfig, warningLines, withServices } from '../read-config.ts'
import { closingNotice, welcomeText } from '../texts.ts'

type ListenError = Error & { readonly code: string; readonly address?: string; readonly port?: number }

/** The parent of workers opens their ports, where the system call is `bind`. */
const isListenError = (error: unknown): error is ListenError =>
  error instanceof Error &&
  'syscall' in error &&
  (error.syscall === 'listen' || error.syscall === 'bind') &&
  'code' in error

/** The side whose port could not be opened; the public side is opened first. */
const sideOf = ({ listen }: Config, { address, port }: ListenError): 'listen' | 'admin' =>
  port === listen.port && (address === undefined || address === listen.host) ? 'listen' : 'admin'

/** How the demo gets another port. */
const variable = { listen: ' with TRELLIS_PORT=8081', admin: ' with TRELLIS_ADMIN_PORT=9091' } as const

/** Why the gateway could not start: the key concerned and a remedy. */
const startFailure = (error: unknown, config: Config, demo: boolean): string => {
  if (!isListenError(error)) return error instanceof Error ? error.message : String(error)
  const side = sideOf(config, error)
  const { code, message, address = config[side].host, port = config[side].port } = error
  switch (code) {
    case 'EADDRINUSE':
      return `${side}.port: another program listens on ${address}:${port}; stop it, or choose another port${demo ? variable[side] : ''} (${code})`
    case 'EACCES':
      return `${side}.port: this user may not open port ${port}; choose one from 1024 on, or grant CAP_NET_BIND_SERVICE (${code})`
    case 'EADDRNOTAVAIL':
      return `${side}.host: ${address} is not an address of this machine; 0.0.0.0 means all addresses (${code})`
    case 'ENOTFOUND':
      return `${side}.host: the name cannot be resolved (${code})`
    default:
      return message
  }
}

/** Added to the time of draining, for closing sockets and stores. */
const closeMarginMs = 5_000

/** What a browser sees of the demo at `/`. */
const demoPage = async ({ packageFolder }: CliPorts, { admin, publicUrl }: Config): Promise<string> => {
  const addresses = { gateway: publicUrl, admin: adminUrl(admin) }
  const page = await readFile(new URL('public/demo.html', packageFolder), 'utf8')
  const escaped = (url: string): string => url.replaceAll('&', '&amp;').replace(/[<>"']/g, '')
  return Object.entries(addresses).reduce(
    (text, [name, url]) => text.replaceAll(`{{${name}}}`, escaped(url)),
    page,
  )
}

export const start = async (
  ports: CliPorts,
  loaded: Loaded,
  { demo = false, demoDocument }: ConfigChoice,
): Promise<End> => {
  const { config, hash, file, filled } = loaded
  ports.stderr.write(await warningLines(loaded, ports.stderr))
  let { files } = loaded
  let gateway: StartedGateway
  try {
    gateway = await ports.startGateway(config, {
      configHash: hash,
      version: ports.version,
      ...(demo && demoDocument === undefined ? { frontPage: await demoPage(ports, config) } : {}),
      filled,
      readConfig: async () => {
        const result = withServices((await readConfig(file, ports, demoDocument)).result)
        // After a failed reading the files of the last good one stay watched.
        if (result.kind === 'ok') files = result.files
        return result
      },
    })
  } catch (error) {
    ports.stderr.write(`trellis: cannot start: ${startFailure(error, config, demo)}\n`)
    return 'notStarted'
  }
  if (config.reload.watch && file !== undefined)
    ports.reloadOnChange(gateway, () => files, config.reload.pollMs)
  const { delayMs, timeoutMs } = config.drain
  ports.stopOnSignal(gateway, delayMs + timeoutMs + closeMarginMs, (start) =>
    closingNotice(start === 'at-once' ? 0 : delayMs, timeoutMs),
  )
  // stdout carries the log.
  ports.stderr.write(welcomeText(config, gateway))
  // In the background: an upstream may be slow or start later than the gateway.
  const publicUrl = config.publicUrl.endsWith(':0') ? gateway.publicAddress : config.publicUrl
  void ports.upstreamIssues({ ...config, publicUrl }, 'sites').then((issues) => {
    for (const issue of issues) gateway.warn(issue)
  })
  return 'running'
}
