/** Who is at the other end of the connection, or what a trusted proxy says of it. */
export type Client = {
  /** IP address, or `unknown` when the connection has gone already. */
  readonly address: string
  readonly protocol: 'http' | 'https'
  /** The connection is one of a trusted proxy. */
  readonly viaTrustedProxy: boolean
}
