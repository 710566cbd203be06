import type { Config } from '../config/config.ts'

/** What Node says of a socket that could not be opened. */
type ListenError = Error & { readonly code: string; readonly address?: string; readonly port?: number }

/** The parent of workers opens their ports for them, and there it is called `bind`. */
const isListenError = (error: unknown): error is ListenError =>
  error instanceof Error &&
  'syscall' in error &&
  (error.syscall === 'listen' || error.syscall === 'bind') &&
  'code' in error

/** Whose port it was; the public side is opened first. */
const sideOf = ({ listen }: Config, { address, port }: ListenError): 'listen' | 'admin' =>
  port === listen.port && (address === undefined || address === listen.host) ? 'listen' : 'admin'

/** Why the gateway could not start: which key it is about, and what can be done. */
export const startFailure = (error: unknown, config: Config): string => {
  if (!isListenError(error)) return error instanceof Error ? error.message : String(error)
  const side = sideOf(config, error)
  const { code, message, address = config[side].host, port = config[side].port } = error
  switch (code) {
    case 'EADDRINUSE':
      return `${side}.port: another program listens on ${address}:${port}; stop it, or choose another port (${code})`
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
