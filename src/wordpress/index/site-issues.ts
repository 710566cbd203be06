import type { NoStoreReason } from '../../cache/events.ts'
import { type HeaderLines, headerValue, headerValues } from '../../http/headers/header-lines.ts'
import { isJsonObject, ownMember, parsedJson } from '../../http/json-text.ts'
import type { Issue, Seen } from '../../service/connection.ts'
import { listIn, readIndex, rootOf } from './index-document.ts'

/** Texts of an upstream that stand in an issue: a line of a log has an end, and no control characters. */
const shown = (text: string): string => text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)

const indexIn = (response: Seen): Readonly<Record<string, unknown>> | undefined => {
  if (response.kind === 'none' || response.status !== 200) return undefined
  const document = parsedJson(response.content.toString())
  if (!isJsonObject(document) || listIn(ownMember(document, 'namespaces')) === undefined) return undefined
  return isJsonObject(ownMember(document, 'routes')) ? document : undefined
}

/** Is it the index of a WordPress, or of an interface like it? */
export const isIndex = (response: Seen): boolean => indexIn(response) !== undefined

const parts = /^(.*?)((?:\/index\.php)?\/wp-json)?\/?$/

/** Where WordPress may have its index, when it is not at the root of the interface: with and without permalinks, in the same folder and above. */
export const otherRoots = (basePath: string): readonly string[] => {
  const folder = parts.exec(basePath)?.[1] ?? ''
  const folders = [...new Set([folder, ''])]
  const permalinks = folders.flatMap((path) => [`${path}/wp-json`, `${path}/index.php/wp-json`])
  // Last: WordPress takes this parameter on every path, also where it has permalinks.
  const plain = folders.map((path) => `${path}/?rest_route=`)
  return [...permalinks, ...plain].filter((root) => root !== basePath)
}

const errorCode = (content: Buffer): string => {
  const document = parsedJson(content.toString())
  const code = isJsonObject(document) ? ownMember(document, 'code') : undefined
  return typeof code === 'string' ? ` ${shown(code)}` : ''
}

/** The part of the index's response that needs no other request to be understood; `none` means: look at `otherRoots`. */
const permalinkIssue = (root: string, response: Seen): Issue | undefined => {
  if (response.kind === 'none') {
    return {
      kind: 'no-answer',
      text: `The upstream ${noResponse(response.reason)}`,
    }
  }
  const { status, content } = response
  const location = headerValue(response.headers, 'location')
  if (status === 503) {
    return {
      kind: 'maintenance',
      text: `The upstream answers GET ${root} with 503, as WordPress does during an update: wait until it ends. If an update was interrupted, delete the file .maintenance in the folder of WordPress.`,
    }
  }
  if (status === 401 || status === 403) {
    return {
      kind: 'index-refused',
      text: `The upstream refuses its index to anonymous requests (GET ${root}: ${status}${errorCode(content)}), for example because of a security plugin. Trellis reads it without a login: allow this GET.`,
    }
  }
  if (status >= 300 && status < 400 && location !== undefined) {
    return {
      kind: 'index-redirected',
      text: `The upstream redirects GET ${root} to ${shown(location)}, but Trellis does not follow redirects: set upstream.targets and upstream.basePath to the final address.`,
    }
  }
  return undefined
}

/** Judges the response at the root of the interface; `roots`: those of `otherRoots` that have an index. */
export const indexIssue = (basePath: string, response: Seen, roots: readonly string[]): Issue | undefined => {
  if (isIndex(response)) return undefined
  const root = `${basePath}/`
  const plain = permalinkIssue(root, response)
  if (plain !== undefined) return plain
  const status = response.kind === 'answer' ? response.status : 0
  const [otherRoot] = roots
  if (otherRoot === undefined) {
    return {
      kind: 'no-wordpress',
      text: `The upstream is not a WordPress: GET ${root} is ${status} without an index (JSON with namespaces and routes), and so are the other usual paths. Check upstream.targets, and upstream.host if several sites share the server.`,
    }
  }
  return otherRoot.endsWith('?rest_route=')
    ? {
        kind: 'plain-permalinks',
        text: `There is no index at ${root}, only at ${otherRoot}/: WordPress uses plain permalinks. Choose another structure in Settings, Permalinks; basePath is then /wp-json, or /index.php/wp-json if the structure begins with /index.php.`,
      }
    : {
        kind: 'wrong-base-path',
        text: `There is no index at ${root} (${status}), but there is one at ${otherRoot}/: set upstream.basePath to ${otherRoot}, and also mount if clients should keep their URLs.`,
      }
}

/** By the codes of Node, OpenSSL and undici: what they say of the server, and what to do. */
const connectionFaults: readonly (readonly [RegExp, string, string])[] = [
  [/^ENOTFOUND|^EAI_AGAIN/, 'has no address', 'correct upstream.targets, or the DNS'],
  [/^CERT_HAS_EXPIRED/, 'has a certificate that has expired', 'renew it'],
  [
    /^ERR_TLS_CERT_ALTNAME/,
    'has a certificate for another name',
    'write a name of the certificate into upstream.tls.serverName',
  ],
  [
    /SELF_SIGNED|^UNABLE_TO_/,
    'has a certificate of an unknown authority',
    'write the certificate of the authority into upstream.tls.ca',
  ],
  [
    /^ERR_SSL_WRONG_VERSION_NUMBER/,
    'does not speak TLS',
    'write http:// into upstream.targets, or the port for TLS',
  ],
  [
    /^UND_ERR_SOCKET|^ECONNRESET|^HPE_/,
    'sends no HTTP response',
    'correct the port in upstream.targets, write https:// if it speaks TLS, or read its log',
  ],
]

const noResponse = (reason: string): string => {
  const [, fault, remedy] = connectionFaults.find(([codes]) => codes.test(reason)) ?? [
    undefined,
    'does not respond',
    'start it, or correct upstream.targets',
  ]
  return `${fault} (${reason}): ${remedy}.`
}

/** Does a server answer at all? Its status says nothing where no contract names one. */
export const reachIssue = (target: string, response: Seen): Issue | undefined =>
  response.kind === 'none'
    ? { kind: 'unreachable', text: `${target} ${noResponse(response.reason)}` }
    : undefined

/** The path of the interface as the index names it itself; undefined where it does not. */
export const advertisedRoot = (response: Seen): string | undefined => {
  if (!isIndex(response) || response.kind === 'none') return undefined
  const reading = readIndex(response.content)
  const root = reading.kind === 'index' ? rootOf({ ...reading.index, identity: {} }, '') : undefined
  return root === undefined ? undefined : new URL(root).pathname.replace(/\/$/, '')
}

/** Does the site announce its interface where the gateway asks for it, or where clients reach it? */
export const rootIssue = (basePath: string, mount: string, response: Seen): Issue | undefined => {
  const path = advertisedRoot(response)
  if (path === undefined || path === basePath || path === mount) return undefined
  return {
    kind: 'root-elsewhere',
    text: `WordPress announces its REST API at ${shown(path)} (Link: rel="https://api.w.org/"), but upstream.basePath is ${basePath === '' ? '/' : basePath}: the editor and all clients that follow the link are neither checked nor cached. Set mount and upstream.basePath to ${shown(path)}.`,
  }
}

/** Is there a WordPress companion that knows the token? It answers polls with JSON, and refuses other signatures with 401. */
export const companionIssue = (response: Seen): Issue | undefined => {
  if (response.kind === 'none') return undefined
  if (response.status === 401) {
    return {
      kind: 'wrong-token',
      text: 'The WordPress companion refuses the signature (401): changes.token is not the token of the plugin, or the clocks differ by more than five minutes.',
    }
  }
  const reply = response.status === 200 ? parsedJson(response.content.toString()) : undefined
  if (isJsonObject(reply)) return undefined
  return {
    kind: 'no-companion',
    text: `The WordPress companion does not answer (status ${response.status}): changes.token is set, but the plugin is not in wp-content/mu-plugins, or a page cache or firewall answers in its place.`,
  }
}

const causeOf = (reason: NoStoreReason, fields: HeaderLines): string | undefined => {
  const [shownControl, shownVary] = ['cache-control', 'vary'].map((name) => headerValue(fields, name) ?? '')
  switch (reason) {
    case 'set-cookie': {
      const names = headerValues(fields, 'set-cookie').map((line) => shown(line.split('=', 1)[0] ?? ''))
      return `it sets a cookie (${names.slice(0, 3).join(', ')}). Its name often names the plugin: let that set it in pages or after a login only, or remove Set-Cookie from responses of the REST API (filter rest_post_dispatch)`
    }
    case 'no-store':
    case 'private':
      return `it forbids that (Cache-Control: ${shown(shownControl ?? '')}), as a plugin does with nocache_headers() or the filter rest_send_nocache_headers. Let the plugin leave out the REST API, or set override: true in the rule`
    case 'vary-any':
      return `no other request is like it (Vary: ${shown(shownVary ?? '')}). Correct Vary in the plugin or web server that sends it`
    case 'token':
      return 'a header looks like a token of its reader. If it is none, list it in cache.harmlessFields'
    default:
      return undefined
  }
}

/** A list that a rule caches and an anonymous reader gets, and which is not stored because of what a plugin adds. */
export const readIssue = (target: string, reason: NoStoreReason, fields: HeaderLines): Issue | undefined => {
  const cause = causeOf(reason, fields)
  return cause === undefined
    ? undefined
    : {
        kind: 'not-stored',
        text: `A rule caches GET ${target}, but the response is not stored (detail=${reason}): ${cause}.`,
      }
}

/** How clients reach the site, and how the gateway reaches the upstream. */
export type Reached = {
  /** Origin and, where it has one, path; no slash at the end. */
  readonly publicUrl: string
  readonly mount: string
  readonly host: 'target' | 'preserve'
}

const isSameUrl = (first: string, second: string): boolean =>
  URL.canParse(first) &&
  URL.canParse(second) &&
  new URL(first).href.replace(/\/$/, '') === new URL(second).href.replace(/\/$/, '')

/** The home that a WordPress must have so that its own links lead through the gateway. */
const expectedHome = ({ publicUrl, mount }: Reached): string =>
  `${publicUrl}${parts.exec(mount)?.[2] === undefined ? '' : (parts.exec(mount)?.[1] ?? '')}`

/** Does the home that the index names lead clients back to the gateway? */
export const homeIssue = (reached: Reached, response: Seen): Issue | undefined => {
  const home = ownMember(indexIn(response) ?? {}, 'home')
  const expected = expectedHome(reached)
  if (typeof home !== 'string' || isSameUrl(home, expected)) return undefined
  return {
    kind: 'home-elsewhere',
    text: `The home of WordPress is ${shown(home)}, but clients use ${expected}: its redirects and links bypass the gateway, and so do writes through them. Set WP_HOME and WP_SITEURL to ${expected} in wp-config.php, unless another server is meant to show the pages.`,
  }
}

/** Does the front page send a client to the address that it asked for? */
export const loopIssue = ({ publicUrl, mount, host }: Reached, response: Seen): Issue | undefined => {
  const location = response.kind === 'none' ? undefined : headerValue(response.headers, 'location')
  if (response.kind === 'none' || location === undefined || response.status < 300 || response.status > 399)
    return undefined
  const url = `${publicUrl}${mount === '/' ? '' : mount}/`
  if (!URL.canParse(location, url) || !isSameUrl(new URL(location, url).href, url)) return undefined
  const why =
    host === 'target'
      ? 'WordPress receives the host of the target and redirects to its home. Set upstream.host: preserve'
      : 'the upstream does not know the public address. Make it read X-Forwarded-Proto if clients use https, and set WP_HOME and WP_SITEURL to the public URL'
  return { kind: 'redirect-loop', text: `The front page ${url} redirects to itself: ${why}.` }
}
