import type { Config } from '../config/config.ts'
import { faultLine } from '../config/fault.ts'
import type { CliPorts, ExitReason } from './cli-ports.ts'
import type { JsonOption } from './options.ts'
import { configName, faultLines, fileOf, isMissing, readConfig } from './read-config.ts'
import { printable, reachableAddress } from './texts.ts'

/** The admin side of a running gateway, as the command line reaches it. */
export type AdminAddress = {
  /** Without a slash at its end. */
  readonly url: string
  /** '' for none. */
  readonly token: string
}

export type AdminOptions = JsonOption & {
  /** Origin of the admin side; undefined: that of the configuration. */
  readonly admin?: string
  readonly config?: string
}

const defaultAdmin = 'http://127.0.0.1:9090'

/** Where this machine reaches the admin side of a configuration. */
export const adminUrl = ({ host, port }: Pick<Config['admin'], 'host' | 'port'>): string =>
  reachableAddress(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)

const addressOf = (admin: Config['admin'], url: string | undefined, otherToken: string): AdminAddress => ({
  url: url ?? adminUrl(admin),
  token: admin.token.isSet ? admin.token.reveal() : otherToken,
})

/**
 * Where the admin side is, and its token. The token of a configuration is sent only where the command or the file names the gateway.
 * A file with faults is enough where its section `admin` has none: the gateway runs with an earlier one, and needs its operator now.
 */
export const adminAddress = async (
  ports: CliPorts,
  { admin: named, config }: AdminOptions,
): Promise<AdminAddress | ExitReason> => {
  const configFile = named === undefined ? fileOf({ config }, ports) : config
  const token = ports.env['TRELLIS_ADMIN_TOKEN'] ?? ''
  const url = named?.replace(/\/+$/, '')
  if (configFile === undefined) return { url: url ?? defaultAdmin, token }
  const { file, result } = await readConfig(configFile, ports)
  if (result.kind === 'ok') return addressOf(result.config.admin, url, token)
  // No file says which gateway is meant.
  if (configFile === '-' || isMissing(configFile)) {
    ports.stderr.write(faultLines(file, result.faults, ports.stderr))
    return 'configFaults'
  }
  const { readAdminSection } = await import('../config/load.ts')
  const admin = await readAdminSection(configFile, ports.env)
  const address = admin === undefined ? { url: url ?? defaultAdmin, token } : addressOf(admin, url, token)
  const first = result.faults[0] === undefined ? '' : `, the first is ${faultLine(result.faults[0])}`
  ports.stderr.write(
    printable(`trellis: ${configName(file)} has faults${first}; asking the gateway at ${address.url}\n`),
  )
  return address
}
