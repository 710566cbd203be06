import { apiDocumentOf, checkConfig } from '../gateway/load-config.ts'
import type { ApiDocument } from '../openapi/document/api-document.ts'
import type { Operation, SecurityScheme } from '../openapi/document/operation.ts'
import { alignedLines } from './texts.ts'
import { readUpstream, type UpstreamUrl } from './upstream-url.ts'

/** A value in double quotes, in which `${` would be a reference to the environment. */
export const quoted = (text: string): string => JSON.stringify(text.replaceAll('${', '$${'))

/* biome-ignore-start lint/suspicious/noTemplateCurlyInString: references as the file spells them */
/** The settings beside services. */
export const commonLines = (publicUrl: string | undefined, cacheLines: readonly string[] = []): string[] => [
  '# Configuration of Trellis. Check it with `trellis check`, then run `trellis start`.',
  '# Every setting with its default: docs/settings.md in the package, or `trellis schema`.',
  '# "${NAME:-default}" reads an environment variable; secrets can be file:/run/secrets/name.',
  '',
  'listen: # clients connect here',
  '  host: "${TRELLIS_HOST:-127.0.0.1}" # 0.0.0.0 = every address of this machine',
  '  port: "${TRELLIS_PORT:-8080}"',
  '',
  'admin: # metrics, health, status page, purge; do not expose it to clients',
  '  host: "${TRELLIS_ADMIN_HOST:-127.0.0.1}"',
  '  port: "${TRELLIS_ADMIN_PORT:-9090}"',
  '  token: "${TRELLIS_ADMIN_TOKEN:-}" # set it where other machines reach this port; empty = writes from this machine only',
  '',
  ...(publicUrl === undefined
    ? ['# publicUrl: https://www.example.org # URL that clients use; without it, made from listen']
    : [`publicUrl: ${quoted(publicUrl)} # URL that clients use; links in responses begin with it`]),
  'trustedProxies: [] # proxies in front whose X-Forwarded-For is trusted, e.g. [10.0.0.0/8]',
  '',
  'cache:',
  '  maxBytes: 256MiB # memory for stored responses',
  ...cacheLines,
  '',
]
/* biome-ignore-end lint/suspicious/noTemplateCurlyInString: references as the file spells them */

/** A text of the document as part of a comment: it cannot end the line. */
const comment = (text: string, longest = 100): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/g, ' ').slice(0, longest)

/** Where requests go: servers, or the mock that answers with the examples of the document. */
export type DocumentUpstream = UpstreamUrl | 'mock'

/** The server that a document names first; undefined when that is no http(s) URL. */
export const documentServer = ({ server }: ApiDocument): UpstreamUrl | undefined =>
  server === undefined ? undefined : readUpstream(server)

/** A name that a service may have, made of the title. */
const serviceName = ({ title }: ApiDocument): string => {
  const words = title
    .toLowerCase()
    .replaceAll(/[^a-z\d]+/g, '-')
    .replaceAll(/^[-\d]+|-+$/g, '')
  return words.slice(0, 32).replace(/-+$/, '') || 'api'
}

const parameterSegment = /^\{[^{}]*\}$/

const healthPath = /\/(?:health(?:z|check)?|livez|readyz)$/

type OperationKind = 'list' | 'item' | 'read' | 'search' | 'write' | 'health' | 'session'

/** A response to a GET with one of these words in its path or name is of one caller, or begins or ends what the caller may do. */
const sessionWords: ReadonlySet<string> = new Set([
  ...['login', 'logon', 'logout', 'logoff', 'signin', 'signon', 'signout', 'signup', 'register', 'sso'],
  ...['auth', 'authenticate', 'authentication', 'authorize', 'authorization', 'oauth', 'oauth2', 'oidc'],
  ...['saml', 'saml2', 'openid', 'session', 'sessions', 'token', 'tokens', 'jwt', 'csrf', 'xsrf', 'nonce'],
  ...['password', 'passwords', 'otp', 'totp', 'mfa', '2fa', 'captcha', 'impersonate', 'apikey', 'apikeys'],
])
const sessionPairs = /(?:^| )(?:log|sign) ?(?:in|on|out|off|up)(?: |$)|(?:^| )(?:one time|api key|who am i)/

/** `getUserLogin`, `/users/log-in` and `auth_token` are words. A parameter may have any name. */
const wordsOf = (text: string): string =>
  text
    .replaceAll(/\{[^{}]*\}/g, ' ')
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .join(' ')

const isOfSession = ({ template, operationId }: Operation): boolean =>
  [template, operationId]
    .map(wordsOf)
    .some((words) => sessionPairs.test(words) || words.split(' ').some((word) => sessionWords.has(word)))

/** The kind of an operation by its path: a list has items below it. */
const kindOf = (operation: Operation, templates: ReadonlySet<string>, setsCookie: boolean): OperationKind => {
  const { method, template, effect, security } = operation
  if (effect === 'safe') return 'search'
  if (method !== 'GET' && method !== 'HEAD') return 'write'
  if (effect === 'writes') return 'write'
  if (setsCookie || isOfSession(operation)) return 'session'
  if (method === 'GET' && healthPath.test(template) && security.length === 0) return 'health'
  if (parameterSegment.test(template.split('/').at(-1) ?? '')) return 'item'
  const hasItems = [...templates].some(
    (otherTemplate) =>
      otherTemplate.startsWith(`${template}/`) &&
      parameterSegment.test(otherTemplate.slice(template.length + 1)),
  )
  return hasItems ? 'list' : 'read'
}

const schemeText = (scheme: SecurityScheme): string => {
  switch (scheme.kind) {
    case 'apiKey':
      return `${scheme.location} ${scheme.name}`
    case 'http':
      return scheme.scheme
    case 'bearer':
      return 'bearer'
    case 'unseen':
      return 'not in the request'
  }
}

const credentialText = ({ security }: Operation): string => {
  if (security.length === 0) return '-'
  return security
    .map((schemes) => (schemes.length === 0 ? 'none' : schemes.map(schemeText).join(' and ')))
    .join(' or ')
}

/** How long a response may be stored without a write through the gateway. */
const suggestedTtls: Readonly<Partial<Record<OperationKind, string>>> = {
  list: '30s',
  item: '60s',
  read: '60s',
}

/** A path pattern of a rule: parameters become `*`. */
const patternOf = (template: string): string => template.replaceAll(/\{[^{}]*\}/g, '*')

const rulePath = /^\/(?:[A-Za-z0-9._~!$&'()+,;=:@%*-]+(?:\/(?!\/)|$))*$/
const operationName = /^[A-Za-z][\w./:-]{0,99}$/

/** A rule for one operation; undefined where its responses are never stored, or no rule can name it. */
const ruleOf = (
  operation: Operation,
  kind: OperationKind,
  isUnique: (operationId: string) => boolean,
): string | undefined => {
  const { method, template, operationId, security, isAmbiguous, cache } = operation
  const ttl = suggestedTtls[kind]
  const hasQueryKey = security
    .flat()
    .some((scheme) => scheme.kind === 'apiKey' && scheme.location === 'query')
  if (ttl === undefined || method !== 'GET' || isAmbiguous || hasQueryKey || cache !== undefined)
    return undefined
  if (operationName.test(operationId) && isUnique(operationId))
    return `{ operation: ${quoted(operationId)}, ttl: ${ttl} }`
  const pattern = patternOf(template)
  if (!rulePath.test(pattern) || /\*\*|\/\.{1,2}(?:\/|$)/.test(pattern)) return undefined
  return `{ match: ${quoted(`GET ${pattern}`)}, ttl: ${ttl} }`
}

/** No path is known that stands for health: any response but a fault of the server is taken for it. */
export const anyResponseHealth =
  "health: { path: /, interval: 10s, expect: '200-499' } # any answer that is no fault; better: a health path of the upstream"

/** Clients keep their URLs: what they asked the server for, they ask the gateway for. */
const mountOf = (upstream: DocumentUpstream): string =>
  upstream === 'mock' || upstream.path === '' || /[*:]/.test(upstream.path) ? '/' : quoted(upstream.path)

const maxLines = 200
const maxRules = 100

/** The lines of `services` for a service with this document. `rules`: in force, or as comments that can be put in force. */
export const documentServiceLines = (
  document: ApiDocument,
  path: string,
  upstream: DocumentUpstream,
  rules: 'in-force' | 'suggested',
): readonly string[] => {
  const { operations } = document.contract
  const templates = new Set(operations.map(({ template }) => template))
  const counts = new Map<string, number>()
  for (const { operationId } of operations) counts.set(operationId, (counts.get(operationId) ?? 0) + 1)
  const isUnique = (operationId: string): boolean => counts.get(operationId) === 1
  const setsCookie = document.cookieOperations()
  const described = operations.map((operation) => ({
    operation,
    kind: kindOf(operation, templates, setsCookie.has(operation)),
  }))
  const table = alignedLines([
    ['METHOD', 'PATH', 'KIND', 'CREDENTIAL', 'OPERATION'],
    ...described.slice(0, maxLines).map(({ operation, kind }) => {
      const { method, template, operationId } = operation
      return [method, comment(template), kind, comment(credentialText(operation)), comment(operationId)]
    }),
  ])
  const health = described.find(({ kind }) => kind === 'health')?.operation.template
  const ruleTexts = described.flatMap(({ operation, kind }) => ruleOf(operation, kind, isUnique) ?? [])
  const isMore = operations.length > maxLines
  const ruleLines = ['cache:', '  rules:', ...ruleTexts.slice(0, maxRules).map((rule) => `    - ${rule}`)]
  return [
    'services:',
    `  ${serviceName(document)}:`,
    '    contract: openapi',
    `    document: ${quoted(path)} # what it does not describe is refused; a change of the file reloads it`,
    `    mount: ${mountOf(upstream)} # public path of the service; paths of the document are below it`,
    '    upstream:',
    ...(upstream === 'mock'
      ? ['      targets: [embedded] # answers with the examples of the document']
      : [
          `      targets: [${quoted(upstream.origin)}] # one or several servers`,
          `      basePath: ${quoted(upstream.path === '' ? '/' : upstream.path)} # path on the upstream that stands for the mount`,
          `      ${health === undefined ? anyResponseHealth : `health: { path: ${quoted(health)}, interval: 10s }`}`,
        ]),
    '    # Operations as the document describes them. KIND: list = has items below it, item = ends in a parameter,',
    '    # session = logs in or out, gives a token or sets a cookie: no rule is suggested.',
    '    # CREDENTIAL: what a request must have, checked by presence; responses are stored for each credential.',
    ...table.map((line) => `    #   ${line}`),
    ...(isMore ? [`    #   and ${operations.length - maxLines} more: trellis routes`] : []),
    '    # Nothing is stored unless a rule names it. Every write through Trellis drops all stored responses of the service;',
    '    # ttl limits the delay of changes that bypass it.',
    ...(ruleTexts.length === 0 ? ['    # No operation is suggested for caching.'] : []),
    ...(ruleTexts.length > 0 && rules === 'suggested'
      ? ['    # Suggested rules; remove "# " to put them in force:']
      : []),
    ...(ruleTexts.length === 0
      ? []
      : ruleLines.map((line) => (rules === 'suggested' ? `    # ${line}` : `    ${line}`))),
  ]
}

type DocumentRead =
  | { readonly kind: 'document'; readonly document: ApiDocument }
  | { readonly kind: 'faults'; readonly messages: readonly string[] }

/** Reads and checks the document of a file, as a configuration in `folder` would. */
export const readDocument = async (file: string, folder: string): Promise<DocumentRead> => {
  const service = { contract: 'openapi', mount: '/', document: file.replaceAll('${', '$${') }
  const config = { services: { api: { ...service, upstream: { targets: ['http://127.0.0.1:3000'] } } } }
  const result = await checkConfig(JSON.stringify(config), {}, folder)
  if (result.kind === 'faults')
    return { kind: 'faults', messages: result.faults.map(({ message }) => message) }
  const [configuredService] = result.config.services
  return configuredService !== undefined && 'document' in configuredService
    ? { kind: 'document', document: apiDocumentOf(configuredService) }
    : { kind: 'faults', messages: ['the file is not an OpenAPI document'] }
}

/** The configuration of `trellis start --demo openapi FILE`: the document, answered by its own examples; or its faults. */
export const demoDocumentText = async (file: string): Promise<string | readonly string[]> => {
  const reading = await readDocument(file, '.')
  if (reading.kind === 'faults') return reading.messages
  const lines = documentServiceLines(reading.document, file, 'mock', 'in-force')
  return `${[...commonLines(undefined), ...lines].join('\n')}\n`
}
