import { BlockList, isIP, type Socket } from 'node:net'
import type { Client } from '../../exchange/request-context.ts'
import { type RequestHeaders, requestHeader } from '../../http/headers/header-lines.ts'

/** Matches peers that are trusted proxies: their X-Forwarded-For and -Proto, or Forwarded, are used. */
type TrustedProxies = (address: string) => boolean

const mappedForm = /^::ffff:(?:(\d{1,3}(?:\.\d{1,3}){3})|([\da-f]{1,4}):([\da-f]{1,4}))$/

/** An IPv4-mapped address (RFC 4291 §2.5.5.2) as the IPv4 address that it is; the last 32 bits may be written in hexadecimal digits. */
const plain = (address: string): string => {
  const [, dotted, high, low] = mappedForm.exec(address) ?? []
  if (high === undefined || low === undefined) return dotted ?? address
  const bits = [high, low].map((group) => Number.parseInt(group, 16))
  return bits.flatMap((group) => [group >> 8, group & 255]).join('.')
}

/** Is an address in one of these CIDRs, which the configuration has validated? */
export const createAddressList = (cidrs: readonly string[]): ((address: string) => boolean) => {
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

/** The client of one proxy, from the header the proxy sent; undefined when it is absent, hidden or malformed. */
type Hop = { readonly address: string | undefined; readonly protocol: Client['protocol'] | undefined }

const unknownHop: Hop = { address: undefined, protocol: undefined }

const ipOf = (text: string): string | undefined => {
  const address = plain(text.toLowerCase())
  return isIP(address) === 0 ? undefined : address
}

/** An address with or without a port; IPv6 in brackets (RFC 7239 §6). `unknown` and names like `_hidden` are no address. */
const nodeForm = /^(?:\[([\da-f:.]{2,45})\]|(\d{1,3}(?:\.\d{1,3}){3}))(?::(?:\d{1,5}|_[\w.-]{1,64}))?$/i

const nodeOf = (text: string): string | undefined => {
  const [, ipv6, ipv4] = nodeForm.exec(text) ?? []
  return ipOf(ipv6 ?? ipv4 ?? '')
}

const protocolOf = (text: string | undefined): Client['protocol'] | undefined => {
  const protocol = text?.toLowerCase()
  return protocol === 'http' || protocol === 'https' ? protocol : undefined
}

/** One `name=value` of Forwarded. A value may have more characters than a token, since not all proxies quote a port. */
const pairForm = /[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s",;=]+))[ \t]*(?:;|$)/y

const hopOf = (element: string): Hop => {
  const parameters = new Map<string, string>()
  pairForm.lastIndex = 0
  while (pairForm.lastIndex < element.length) {
    const [, name = '', quoted, bare = ''] = pairForm.exec(element) ?? []
    // RFC 7239 §4: each parameter once.
    if (name === '' || parameters.has(name.toLowerCase())) return unknownHop
    parameters.set(name.toLowerCase(), quoted === undefined ? bare : quoted.replace(/\\(.)/g, '$1'))
  }
  return { address: nodeOf(parameters.get('for') ?? ''), protocol: protocolOf(parameters.get('proto')) }
}

const hasOpenQuote = (text: string): boolean => text.replace(/\\./g, '').split('"').length % 2 === 0

/** The parts between commas, the last one first, each when it is asked for: a header may have thousands, of which one is needed. */
function* fromRight(value: string): Generator<string> {
  let end = value.length
  while (end > 0) {
    const comma = value.lastIndexOf(',', end - 1)
    yield value.slice(comma + 1, end)
    end = comma
  }
  if (end === 0) yield ''
}

/** No element of a proxy is longer; an open quote of a client could make one of the whole header. */
const longestElement = 1_024

/**
 * The elements of Forwarded, the last one first. Parsed from the right, where the trusted proxy wrote: from the left, an open
 * quote of the client would swallow the proxy's element.
 */
function* elementsFromRight(value: string): Generator<string> {
  let rest: string | undefined
  for (const piece of fromRight(value)) {
    const element: string = rest === undefined ? piece : `${piece},${rest}`
    // What cannot be read names no client.
    if (element.length > longestElement) {
      yield ''
      return
    }
    if (hasOpenQuote(piece) === (rest === undefined)) rest = element
    else {
      yield element
      rest = undefined
    }
  }
  if (rest !== undefined) yield rest
}

/** Further proxies behind each other are not believed. */
const maxProxies = 32

/** The first address from the right that is not a trusted proxy: the client may have invented everything left of it. */
const clientAmong = (
  hopsFromRight: Iterable<string>,
  read: (hop: string) => Hop,
  isTrusted: TrustedProxies,
): Hop => {
  let client = unknownHop
  let proxiesLeft = maxProxies
  for (const text of hopsFromRight) {
    client = read(text)
    proxiesLeft -= 1
    if (proxiesLeft === 0 || client.address === undefined || !isTrusted(client.address)) break
  }
  return client
}

const forwardedForHop = (text: string): Hop => {
  const hop = text.trim()
  return { address: ipOf(hop) ?? nodeOf(hop), protocol: undefined }
}

/**
 * Reads the headers of a trusted proxy. Forwarded counts only without X-Forwarded-For and -Proto: most proxies write X-Forwarded
 * and pass Forwarded on as their client sent it.
 */
const forwardedHop = (headers: RequestHeaders, isTrusted: TrustedProxies): Hop => {
  const addresses = requestHeader(headers, 'x-forwarded-for')
  const protocol = requestHeader(headers, 'x-forwarded-proto')
  if (addresses === undefined && protocol === undefined) {
    const forwarded = requestHeader(headers, 'forwarded')
    return forwarded === undefined ? unknownHop : clientAmong(elementsFromRight(forwarded), hopOf, isTrusted)
  }
  const { address } = clientAmong(fromRight(addresses ?? ''), forwardedForHop, isTrusted)
  return { address, protocol: protocolOf(protocol) }
}

/** The additional members of an encrypted socket. */
type PeerSocket = Socket & { readonly encrypted?: boolean }

const peerOf = (socket: PeerSocket): Client => {
  const address = plain(socket.remoteAddress ?? '')
  return {
    address: address === '' ? 'unknown' : address,
    protocol: socket.encrypted === true ? 'https' : 'http',
    viaTrustedProxy: false,
  }
}

/** Creates the function that finds the client of a request: the peer, or the client that a trusted proxy names. */
export const createClientOf = (
  isTrusted: TrustedProxies,
): ((socket: Socket, headers: RequestHeaders) => Client) => {
  // A connection has one peer: look it up once, with the first request, while it is certainly connected.
  const peers = new WeakMap<Socket, Client>()
  return (socket, headers) => {
    const storedPeer = peers.get(socket)
    const peer = storedPeer ?? peerOf(socket)
    if (storedPeer === undefined) peers.set(socket, peer)
    if (!isTrusted(peer.address)) return peer
    const hop = forwardedHop(headers, isTrusted)
    return {
      address: hop.address ?? peer.address,
      protocol: hop.protocol ?? peer.protocol,
      viaTrustedProxy: true,
    }
  }
}
