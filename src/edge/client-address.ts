import { BlockList, isIP, type Socket } from 'node:net'
import { type RequestFields, requestField } from '../http/fields.ts'
import type { Client } from '../pipeline/client.ts'

/** Which peers are proxies of ours, whose X-Forwarded-For is believed. */
export type TrustedProxies = (address: string) => boolean

const plain = (address: string): string => (address.startsWith('::ffff:') ? address.slice(7) : address)

/** CIDRs have been checked with the configuration. */
export const createTrustedProxies = (cidrs: readonly string[]): TrustedProxies => {
  if (cidrs.length === 0) return () => false
  const list = new BlockList()
  for (const cidr of cidrs) {
    const [network = '', prefix] = cidr.split('/')
    const family = isIP(network) === 6 ? 'ipv6' : 'ipv4'
    const bits = family === 'ipv6' ? 128 : 32
    list.addSubnet(network, prefix === undefined ? bits : Number(prefix), family)
  }
  return (address) => {
    const family = isIP(address)
    return family !== 0 && list.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }
}

/** The rightmost address that is not a proxy of ours: everything left of it may be invented. */
const forwardedFor = (value: string, isTrusted: TrustedProxies): string | undefined => {
  const hops = value.split(',').map((hop) => plain(hop.trim()))
  for (const hop of hops.reverse()) {
    if (isIP(hop) === 0) return undefined
    if (!isTrusted(hop)) return hop
  }
  return hops.at(-1)
}

/** What an encrypted socket has more than a plain one. */
type PeerSocket = Socket & { readonly encrypted?: boolean }

const peerOf = (socket: PeerSocket): Client => {
  const address = plain(socket.remoteAddress ?? '')
  return {
    address: address === '' ? 'unknown' : address,
    protocol: socket.encrypted === true ? 'https' : 'http',
  }
}

/** Makes the function that tells who is asking: the peer itself, unless it is a trusted proxy that says more. */
export const createClientOf = (
  isTrusted: TrustedProxies,
): ((socket: Socket, fields: RequestFields) => Client) => {
  // A connection has one peer, asked for once: with its first request, when it is surely there.
  const peers = new WeakMap<Socket, Client>()
  return (socket, fields) => {
    const known = peers.get(socket)
    const peer = known ?? peerOf(socket)
    if (known === undefined) peers.set(socket, peer)
    if (!isTrusted(peer.address)) return peer
    const proto = requestField(fields, 'x-forwarded-proto')
    return {
      address: forwardedFor(requestField(fields, 'x-forwarded-for') ?? '', isTrusted) ?? peer.address,
      protocol: proto === 'https' || proto === 'http' ? proto : peer.protocol,
    }
  }
}
