import { isIP } from 'node:net'

/** The eight groups of an IPv6 address, `::` written out; an embedded IPv4 address counts as two. */
const groupsOf = (address: string): readonly string[] => {
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const parts = (text: string): string[] =>
    text === '' ? [] : text.split(':').flatMap((part) => (part.includes('.') ? ['v', '4'] : [part]))
  const leading = parts(head)
  if (tail === undefined) return leading
  const right = parts(tail)
  return [
    ...leading,
    ...Array.from({ length: Math.max(0, 8 - leading.length - right.length) }, () => '0'),
    ...right,
  ]
}

const mappedForm = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i

/** The first groups of an IPv6 address, without leading zeros. */
const firstGroups = (address: string, count: number): string =>
  groupsOf(address)
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')

/** The network of an address, for logs: /24 of IPv4, /48 of IPv6. Others share it, so that it names no person. */
export const addressNetwork = (address: string): string => {
  const ipv4 = mappedForm.exec(address)?.[1] ?? address
  if (isIP(ipv4) === 4) return `${ipv4.slice(0, ipv4.lastIndexOf('.'))}.0/24`
  return isIP(address) === 6 ? `${firstGroups(address, 3)}::/48` : 'unknown'
}

/**
 * The addresses that limits count as one client: an IPv4 address, or the /64 of an IPv6 address, since a single host gets a whole
 * /64 to take addresses from (RFC 6177 §2).
 */
export const addressGroup = (address: string): string => {
  if (isIP(address) !== 6) return address
  return mappedForm.exec(address)?.[1] ?? `${firstGroups(address, 4)}::/64`
}
