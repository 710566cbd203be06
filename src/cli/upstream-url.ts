import { isIP } from 'node:net'

export type UpstreamUrl = {
  readonly origin: string
  /** Path of the URL without a slash at its end; '' for none. */
  readonly path: string
  /** The URL names this machine or an address, not the public name of the site. */
  readonly isInternal: boolean
}

const localName = /^(?:localhost|.*\.(?:localhost|local|internal)|[^.]+)$/

/** A path that needs no other spelling in `basePath`. */
const plainPath = /^(?:\/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*\/?$/

/** An http(s) URL of an upstream; undefined for any other text. */
export const readUpstream = (text: string): UpstreamUrl | undefined => {
  if (!URL.canParse(text)) return undefined
  const { protocol, origin, hostname, pathname, username, password, search, hash } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') return undefined
  if (!plainPath.test(pathname)) return undefined
  if (username !== '' || password !== '' || search !== '' || hash !== '') return undefined
  const bare = hostname.replace(/^\[|\]$/g, '')
  return {
    origin,
    path: pathname.replace(/\/+$/, ''),
    isInternal: isIP(bare) !== 0 || localName.test(hostname),
  }
}
