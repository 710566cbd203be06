import { isIP } from 'node:net'

/** A path prefix in normal form: `/`, or segments of unreserved characters without an end slash and without dot segments. */
export const pathPrefixFault = (text: string): string | undefined => {
  if (text === '/') return undefined
  if (!text.startsWith('/')) return 'the path must start with "/"'
  if (text.endsWith('/')) return 'the path must not end with "/"'
  const segments = text.slice(1).split('/')
  if (segments.includes('')) return 'the path must not have an empty segment ("//")'
  if (segments.some((segment) => segment === '.' || segment === '..'))
    return 'the path must not have dot segments'
  if (segments.some((segment) => !/^[A-Za-z0-9._~!$&'()*+,;=:@-]+$/.test(segment))) {
    return "the path has a character that must be written another way (only letters, digits and -._~!$&'()*+,;=:@)"
  }
  return undefined
}

/** One address or CIDR block, as `trustedProxies` lists them. */
export const cidrFault = (text: string): string | undefined => {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return 'expected an IP address or a CIDR block, e.g. 10.0.0.0/8'
  if (bits === undefined) return undefined
  const longest = version === 4 ? 32 : 128
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > longest) return `the prefix length must be 0 to ${longest}`
  return undefined
}

export type OriginReading =
  | { readonly kind: 'origin'; readonly origin: string }
  | { readonly kind: 'fault'; readonly message: string }

/** An http or https origin (RFC 9110 §4.3.1): scheme, host and port, nothing else. */
export const readOrigin = (text: string): OriginReading => {
  if (!URL.canParse(text)) return { kind: 'fault', message: 'expected an origin, e.g. http://10.0.0.7:8080' }
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { kind: 'fault', message: 'the scheme must be http or https' }
  }
  if (url.username !== '' || url.password !== '') {
    return { kind: 'fault', message: 'an origin has no credentials' }
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || /[?#]$/.test(text)) {
    return {
      kind: 'fault',
      message: 'an origin has no path: it ends after host and port (basePath takes the path)',
    }
  }
  return { kind: 'origin', origin: url.origin }
}

/** Where clients reach the gateway: an absolute http(s) URL, with a path when something in front adds one. */
export const publicUrlFault = (text: string): string | undefined => {
  if (!URL.canParse(text)) return 'expected an absolute URL, e.g. https://api.example.org'
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'the scheme must be http or https'
  if (url.username !== '' || url.password !== '') return 'the URL must not carry credentials'
  if (/[?#]/.test(text)) return 'the URL must not have a query or a fragment'
  return pathPrefixFault(url.pathname === '/' ? '/' : url.pathname)
}
