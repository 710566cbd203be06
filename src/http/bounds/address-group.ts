import { isIP } from 'node:net'

/** The eight groups of an IPv6 address, `::` written out; an embedded IPv4 address counts as two. */
const groupsOf = (address: string): readonly string[] => {
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const parts = (text: string): string[] =>
    text === '' ? [] : text.split(':').flatMap((part) => (part.includes('.') ? ['v', '4'] : [part]))
  const left = parts(head)
  if (tail === undefined) return left
  const right = parts(tail)
  return [
    ...left,
    ...Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0'),
    ...right,
  ]
}

/**
 * Who counts as one caller: an IPv4 address, or the /64 that an IPv6 address is in, since a single host is handed a whole
 * /64 to take addresses from (RFC 6177 §2).
 */
export const addressGroup = (address: string): string => {
  if (isIP(address) !== 6) return address
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  const network = groupsOf(address)
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
