const loopback = /^(?:localhost|.+\.localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|\[::ffff:7f00:1\])$/

/**
 * Which server an origin means, as far as its spelling tells: the same for `localhost` and its addresses (RFC 6761 §6.3),
 * for a name with and without its final dot, and for a host's default ports, where http and https are two doors of one house.
 * Other names and addresses of one machine are told apart: nobody is asked.
 */
export const serverOf = (origin: string): string => {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/\.$/, '')
  return `${loopback.test(host) ? 'localhost' : host}:${port === '80' || port === '443' ? '' : port}`
}
