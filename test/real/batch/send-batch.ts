import { basic } from '../site-under-test.ts'
import type { WordPress } from '../wordpress/start-wordpress.ts'
import type { BatchCase, Sender } from './batch-case.ts'

/** What is compared of a response: everything, with the body parsed. */
export type BatchResponse = {
  readonly status: number
  readonly body: unknown
  /** The response except its content. Only WordPress checks passwords, so responses to a wrong one are not compared. */
  readonly headers: Readonly<Record<string, string | null>>
  /** How its JSON spells what may be spelled in two ways. */
  readonly spelling: { readonly bareSlashes: boolean; readonly beyondAscii: boolean }
}

/** A site and the names it is asked in. */
export type BatchSite = {
  /** REST root, no slash at the end. */
  readonly restRoot: string
  readonly names: 'wordpress' | 'neutral'
  readonly credentials: WordPress['credentials']
}

/** All copies of the site have this address, so that their responses differ in nothing but what the gateway makes of it. */
export const publicUrl = 'http://wordpress.test'

const authorization = (as: Sender, credentials: WordPress['credentials']): Record<string, string> => {
  if (as === 'nobody') return {}
  if (as === 'wrong-password') {
    return { Authorization: basic({ username: credentials.admin.username, password: 'wrong' }) }
  }
  return { Authorization: basic(credentials[as]) }
}

const neutralText = (text: string): string =>
  text
    .replaceAll('/wp/v2', '/site/v2')
    .replaceAll('/WP/V2', '/SITE/V2')
    .replaceAll('%2Fwp%2Fv2', '%2Fsite%2Fv2')
    .replaceAll('/wp-json/', '/site-json/')
    .replaceAll('wp_pattern_', 'site_pattern_')

const wordpressText = (text: string, site: BatchSite): string => {
  const roots = [site.restRoot, site.restRoot.replaceAll('/', '\\/')]
  const plain = roots.reduce(
    (all, root) => all.replaceAll(root, `${publicUrl}/index.php/wp-json`),
    text.replaceAll('\\/', '/'),
  )
  if (site.names === 'wordpress') return plain
  return plain
    .replaceAll(`${publicUrl}/index.php/wp-json/site/v2`, `${publicUrl}/index.php/wp-json/wp/v2`)
    .replaceAll('site_pattern_', 'wp_pattern_')
}

/** Moments of the run, and what is counted by the second or made by chance. */
const steady = (text: string): string =>
  text
    .replaceAll(/"2026-\d\d-\d\dT\d\d:\d\d:\d\d"/g, '"now"')
    .replaceAll(/\/2026\/\d\d\/\d\d\//g, '/now/')
    .replaceAll(/avatar\/[0-9a-f]+/g, 'avatar/x')

/** The largest id that the seed has given. */
const lastSeededId = 137

/** Ids made up during the run, told by the order in which a response first shows them: items side by side may draw them in any order. */
const renumbered = (text: string): string => {
  const numbers = new Map<string, number>()
  return text.replaceAll(/(?<!"status":)\b\d{3,6}\b/g, (number) => {
    if (Number(number) <= lastSeededId) return number
    if (!numbers.has(number)) numbers.set(number, 1_000_000 + numbers.size)
    return String(numbers.get(number))
  })
}

const comparedHeaders = ['allow', 'link', 'cache-control', 'expires', 'x-robots-tag', 'content-type']

const headersOf = (response: Response, as: Sender | undefined, site: BatchSite): BatchResponse['headers'] => {
  if (as === 'wrong-password') return {}
  const values = comparedHeaders.map((name): [string, string | null] => {
    const value = response.headers.get(name)
    return [name, value === null ? null : wordpressText(value, site)]
  })
  return Object.fromEntries(values)
}

/** Sends the case and gives back its response in WordPress's names and addresses. */
export async function sendBatch(site: BatchSite, one: BatchCase): Promise<BatchResponse> {
  const inNames = site.names === 'neutral' ? neutralText : (text: string) => text
  const content = one.raw?.content ?? JSON.stringify(one.envelope)
  const method = one.method ?? 'POST'
  const response = await fetch(`${site.restRoot}/batch/v1${inNames(one.query ?? '')}`, {
    method,
    headers: {
      'Content-Type': one.raw?.type ?? 'application/json',
      ...authorization(one.as ?? 'admin', site.credentials),
      ...one.headers,
    },
    ...(method === 'GET' ? {} : { body: inNames(content) }),
  })
  const written = await response.text()
  const text = renumbered(steady(wordpressText(written, site)))
  const { status } = response
  const headers = headersOf(response, one.as, site)
  const spelling = {
    bareSlashes: written.replaceAll('\\/', '').includes('/'),
    beyondAscii: /[^ -~]/.test(written),
  }
  try {
    return { status, body: JSON.parse(text), headers, spelling }
  } catch {
    return { status, body: text, headers, spelling }
  }
}
