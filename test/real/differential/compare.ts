import { isDeepStrictEqual } from 'node:util'
import type { PlainResponse } from './send.ts'
import { addressAsWordPress, asWordPress, contentOf, linkAsWordPress, type Site } from './spelling.ts'

/** What two responses are compared by. */
export type Aspect =
  | 'status'
  | 'content'
  | 'content-type'
  | 'x-wp-total'
  | 'x-wp-totalpages'
  | 'allow'
  | 'location'
  | 'link'

/** One aspect in which a response of the gateway is not the response of WordPress. */
export type Difference = { readonly aspect: Aspect; readonly direct: unknown; readonly gateway: unknown }

export type Comparison = {
  readonly direct: PlainResponse
  readonly response: PlainResponse
  readonly site: Site
  /** REST root of the WordPress that answered directly. */
  readonly home: string
  /** Every Link field that WordPress has sent to the gateway. */
  readonly upstreamLinks: ReadonlySet<string>
  /** Takes out what no two responses have in common. */
  steady(content: unknown): unknown
}

const plainHeaders = ['content-type', 'x-wp-total', 'x-wp-totalpages', 'allow'] as const

/** All differences; none means that a client cannot distinguish the two. */
export function compare(comparison: Comparison): Difference[] {
  const { direct, response, site, home, steady } = comparison
  const differences: Difference[] = []
  const look = (aspect: Aspect, ofDirect: unknown, ofGateway: unknown): void => {
    if (!isDeepStrictEqual(ofDirect, ofGateway)) {
      differences.push({ aspect, direct: ofDirect, gateway: ofGateway })
    }
  }
  look('status', direct.status, response.status)
  look('content', steady(contentOf(direct)), steady(asWordPress(contentOf(response), site, home)))
  for (const name of plainHeaders) look(name, direct.headers[name], response.headers[name])
  const { location } = response.headers
  look(
    'location',
    steady(direct.headers['location']),
    steady(location && addressAsWordPress(location, site, home)),
  )
  const links = {
    direct: direct.headers['link'],
    gateway: linkAsWordPress(response.headers['link'], site, home),
  }
  if (!sameLinks(links.direct, links.gateway, comparison)) differences.push({ aspect: 'link', ...links })
  return differences
}

/**
 * WordPress repeats the query of the request in its links, and the gateway sends the canonical form. So links may be spelled
 * otherwise, as long as WordPress itself has written them and they lead to the same pages.
 */
function sameLinks(
  direct: string | undefined,
  link: string | undefined,
  { steady, upstreamLinks }: Comparison,
): boolean {
  if (steady(direct) === steady(link)) return true
  if (direct === undefined || link === undefined) return false
  const written = [...upstreamLinks].some((one) => steady(one) === steady(link))
  return written && isDeepStrictEqual(pagesOf(direct), pagesOf(link))
}

function pagesOf(link: string): string[] {
  return [...link.matchAll(/<([^>]*)>; rel="([^"]*)"/g)].map(([, target = '', relation]) => {
    const { pathname, searchParams } = new URL(target)
    return `${relation} ${pathname.toLowerCase().replace(/\/+$/, '')} page=${searchParams.get('page')}`
  })
}
