import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify'
import type { Logger } from 'pino'
import { createFairTurns } from '../http/bounds/fair-turns.ts'
import { contentEntityTag, evaluatePreconditions } from '../http/conditional/preconditions.ts'
import { headersOfLines } from '../http/headers/header-lines.ts'
import { parsedJson } from '../http/json-text.ts'
import { targetParts } from '../http/targets.ts'
import type { MetricSnapshot } from '../observability/metrics.ts'
import { packageFile } from '../package-file.ts'
import { type AdminRequest, createAccess, isWithoutContent } from './access.ts'
import { adminDocument } from './admin-document.ts'
import { addBuilds } from './builds.ts'
import { addChanges, changesPath } from './changes.ts'
import { compressTexts } from './compress-texts.ts'
import { addDiagnosis } from './diagnosis.ts'
import type { AdminEvent, AdminRefusal } from './events.ts'
import type { EntriesQuery, Notice, Operator, ReloadOutcome } from './operator.ts'
import { readPurgeRequest, readWarmRequest } from './purge-request.ts'
import type { Readiness } from './readiness.ts'
import { statusReport } from './status-report.ts'

/** No foreign content, nothing inline, no frames; `data:` for the icons inside Swagger UI's style sheet. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

type DescribedServers = {
  readonly servers?: readonly { readonly url: string }[]
  readonly paths?: Readonly<Record<string, { readonly servers?: readonly { readonly url: string }[] }>>
}

const maxServers = 50

/** Where a page sends requests to try an operation out: the origins of the servers in its document. */
const serversOf = (document: Buffer | undefined): readonly string[] => {
  const { servers = [], paths = {} } = parsedJson(document?.toString() ?? '{}') as DescribedServers
  const all = [...servers, ...Object.values(paths).flatMap((path) => path.servers ?? [])]
  const origins = all.flatMap(({ url }) => (URL.canParse(url) ? [new URL(url).origin] : []))
  return [...new Set(origins)].slice(0, maxServers)
}

const pageHeaders = { 'content-security-policy': policy, 'referrer-policy': 'no-referrer' }
const html = 'text/html; charset=utf-8'

const scriptType = 'text/javascript; charset=utf-8'

const publicFile = (path: string) => (): string => packageFile(`public/${path}`).href

/** In the package the files lie beside the bundle; in a checkout they are those of their own package. */
const swaggerFile = (name: string, ofPackage: () => string) => (): string => {
  const packed = packageFile(`dist/swagger-ui/${name}`)
  return existsSync(packed) ? packed.href : ofPackage()
}

/** Resolved on first use. */
const assets: readonly (readonly [path: string, type: string, address: () => string])[] = [
  [
    '/docs/swagger-ui.css',
    'text/css; charset=utf-8',
    swaggerFile('swagger-ui.css', () => import.meta.resolve('swagger-ui-dist/swagger-ui.css')),
  ],
  [
    '/docs/swagger-ui-bundle.js',
    scriptType,
    swaggerFile('swagger-ui-bundle.js', () => import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js')),
  ],
  ['/docs/page.css', 'text/css; charset=utf-8', publicFile('docs/page.css')],
  ['/docs/start.js', scriptType, publicFile('docs/start.js')],
  ['/status/page.css', 'text/css; charset=utf-8', publicFile('status/page.css')],
  ...[
    'page',
    'actions',
    'ask',
    'charts',
    'draw',
    'entries',
    'explain',
    'map',
    'numbers',
    'overview',
    'upstreams',
    'views',
  ].map((name) => [`/status/${name}.js`, scriptType, publicFile(`status/${name}.js`)] as const),
]

/** The pages for people: the status page and the documentation of all operations. */
const addPages = (server: FastifyInstance, operator: Operator): void => {
  server.get('/', async (_request, reply) => {
    const page = await readFile(packageFile('public/status/index.html'))
    return reply.headers(pageHeaders).type(html).send(page)
  })
  server.get('/docs', async (request, reply) => {
    const { service } = request.query as Readonly<Record<string, unknown>>
    const described = operator.openApi(typeof service === 'string' ? service : undefined)
    const connects = `connect-src 'self' ${serversOf(described).join(' ')}`
    reply.header('content-security-policy', policy.replace("connect-src 'self'", connects))
    return reply.type(html).send(await readFile(packageFile('public/docs/index.html')))
  })
  for (const [path, type, address] of assets) {
    server.get(path, async (_request, reply) => {
      reply.type(type).header('cache-control', 'private, max-age=3600')
      return reply.send(await readFile(fileURLToPath(address())))
    })
  }
}

const refusals: Readonly<Record<AdminRefusal, readonly [status: number, detail: string]>> = {
  'credential-missing': [401, 'Send Authorization: Bearer with the value of admin.token.'],
  'credential-wrong': [401, 'The token differs from admin.token.'],
  'cross-site': [403, 'Requests from pages of other origins are refused.'],
  'host-by-name': [
    403,
    'Without admin.token, the admin side must be addressed as localhost or by IP address.',
  ],
  'not-loopback': [403, 'Without admin.token, writes are accepted from this host only.'],
  'not-json': [415, 'Send Content-Type: application/json.'],
}

const unreadable = 'The request cannot be read.'

const sendProblem = (reply: FastifyReply, status: number, code: string, detail: string): FastifyReply =>
  reply
    .code(status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', status, code, detail }))

const sendRefusal = (reply: FastifyReply, reason: AdminRefusal): FastifyReply => {
  const [status, detail] = refusals[reason]
  // RFC 9110 §11.6.1; Basic makes a browser prompt for the token when the documentation is opened.
  if (status === 401) reply.header('www-authenticate', ['Bearer realm="trellis"', 'Basic realm="trellis"'])
  return sendProblem(reply, status, reason, detail)
}

const sendReloadOutcome = (reply: FastifyReply, outcome: ReloadOutcome): FastifyReply => {
  switch (outcome.kind) {
    case 'applied':
      return reply.send({ outcome: outcome.kind, hash: outcome.hash, changed: outcome.changed })
    case 'unchanged':
      return reply.send({ outcome: outcome.kind, hash: outcome.hash, changed: [] })
    case 'invalid':
      return sendProblem(reply, 422, outcome.kind, outcome.faults.join('\n'))
    case 'restart-needed':
      return sendProblem(reply, 409, outcome.kind, outcome.keys.join('\n'))
    case 'failed':
      return sendProblem(reply, 500, outcome.kind, 'See the log.')
  }
}

const addReloadAndDrain = (server: FastifyInstance, { operator, report }: AdminOptions): void => {
  server.post('/reload', async (request, reply) => {
    report({ kind: 'admin-reload', address: request.socket.remoteAddress ?? '' })
    return sendReloadOutcome(reply, await operator.reload())
  })
  // Answers before the process ends.
  server.post('/drain', async (request, reply) => {
    report({ kind: 'admin-drain', address: request.socket.remoteAddress ?? '' })
    operator.drain()
    return reply.code(202).send({ outcome: 'draining' })
  })
}

type Query = Readonly<Record<string, unknown>>

const maxEntries = 1000

/** Undefined when a value is not documented. */
const readEntriesQuery = ({ sort = 'size', limit = '50' }: Query): EntriesQuery | undefined => {
  if (sort !== 'size' && sort !== 'hits' && sort !== 'age') return undefined
  if (typeof limit !== 'string' || !/^[1-9]\d{0,3}$/.test(limit) || Number(limit) > maxEntries) {
    return undefined
  }
  return { sort, limit: Number(limit) }
}

const isMethod = (text: unknown): text is string =>
  typeof text === 'string' && /^[A-Z][A-Z-]{0,31}$/.test(text)

/** Sends a document that changes seldom: clients ask each time, and mostly get a 304. */
const sendDocument = (
  request: FastifyRequest,
  reply: FastifyReply,
  content: Buffer | undefined,
): FastifyReply => {
  if (content === undefined) return sendProblem(reply, 404, 'not-found', 'No service has this document.')
  const etag = contentEntityTag(content)
  reply.header('cache-control', 'no-cache').header('etag', etag)
  const head = { status: 200, headers: ['ETag', etag] }
  const outcome = evaluatePreconditions(request.headers, request.method, head, 0)
  return outcome === 'not-modified'
    ? reply.code(304).send()
    : reply.type('application/json; charset=utf-8').send(content)
}

const addViews = (server: FastifyInstance, operator: Operator): void => {
  server.get('/cache/entries', async (request, reply) => {
    const query = readEntriesQuery(request.query as Query)
    if (query === undefined) {
      return sendProblem(reply, 400, 'invalid-query', `sort: size, hits or age; limit: 1 to ${maxEntries}`)
    }
    return reply.send({ sort: query.sort, entries: await operator.entries(query) })
  })
  server.get('/explain', async (request, reply) => {
    const { method = 'GET', url, header } = request.query as Query
    const headers = headersOfLines([header ?? []].flat().map(String))
    if (!isMethod(method) || typeof url !== 'string' || url === '' || headers === undefined) {
      const detail = 'url: a public URL or path; method: default GET; header: "Name: value", repeatable'
      return sendProblem(reply, 400, 'invalid-query', detail)
    }
    return reply.send(await operator.explain({ method, url, fields: headers }))
  })
  server.get('/drift', (_request, reply) => reply.send(operator.drift()))
  server.get('/config', (_request, reply) => reply.send(operator.config()))
  server.get('/openapi.json', (request, reply) => sendDocument(request, reply, operator.openApi()))
  const ofAdmin = Buffer.from(JSON.stringify(adminDocument()))
  server.get('/admin-openapi.json', (request, reply) => sendDocument(request, reply, ofAdmin))
  server.get('/openapi/:name.json', (request, reply) => {
    const { name } = request.params as { readonly name: string }
    return sendDocument(request, reply, operator.openApi(name))
  })
}

type AdminOptions = {
  readonly logger: Logger
  /** '' when none is configured. */
  readonly token: string
  readonly operator: Operator
  /** The metrics in the format that the Accept header selects. */
  scrape(accept: string | undefined): Promise<{ readonly contentType: string; readonly text: string }>
  metrics(): Promise<readonly MetricSnapshot[]>
  readiness(): Readiness
  notices(): readonly Notice[]
  report(event: AdminEvent): void
  /** Called for each route; its path as Fastify writes it. */
  registered?(method: string, path: string): void
}

/** Open to orchestrators and balancers under any name, with any headers; they reveal only whether the process is healthy. */
const probePaths: ReadonlySet<string | undefined> = new Set(['/livez', '/readyz'])

const guard = (server: FastifyInstance, { token, report }: AdminOptions): void => {
  const access = createAccess(token)
  server.addHook('onRequest', async (request, reply) => {
    const writes = request.method !== 'GET' && request.method !== 'HEAD'
    const { url } = request.routeOptions
    if (probePaths.has(url) && !writes) return undefined
    const address = request.socket.remoteAddress ?? ''
    // The route has its own credential.
    if (url === changesPath && request.method === 'POST') return undefined
    const isOpen = url === '/metrics'
    const adminRequest: AdminRequest = { writes, isOpen, peer: address, headers: request.headers }
    const decision = access(adminRequest)
    if (decision.kind === 'granted') {
      // `curl -X POST -d ''` names a type all the same, and Fastify would parse nothing as JSON.
      if (isWithoutContent(request.headers)) delete request.headers['content-type']
      return undefined
    }
    report({ kind: 'admin-refused', address, reason: decision.reason })
    return sendRefusal(reply, decision.reason)
  })
}

/** More are refused: no tool sends as many at once. A client that does not read its responses counts until it is disconnected. */
const maxUnanswered = 256
const maxConnections = 512
const silentMs = 60_000

/** A client whose request is being worked on can only wait: many purges of a large cache at once take longer than it may be silent. */
const countNoWorkAsSilence = (server: FastifyInstance): void => {
  server.addHook('preHandler', async ({ socket }) => {
    socket.setTimeout(0)
  })
  server.addHook('onSend', async ({ socket }) => {
    socket.setTimeout(silentMs)
  })
}

/**
 * Begins one request in each turn of the event loop: a list of all metrics or of all stored responses takes milliseconds, and a
 * client may pipeline a thousand requests in one packet.
 */
const respondInTurn = (server: FastifyInstance): void => {
  const turns = createFairTurns(1)
  let unanswered = 0
  server.addHook('onRequest', (request, reply, done) => {
    if (probePaths.has(request.routeOptions.url)) {
      done()
      return
    }
    if (unanswered >= maxUnanswered) {
      reply.header('connection', 'close').header('retry-after', '1')
      void sendProblem(reply, 503, 'overloaded', 'Too many requests are waiting.')
      return
    }
    unanswered += 1
    reply.raw.once('close', () => {
      unanswered -= 1
    })
    turns.begin(request.socket.remoteAddress ?? '', done)
  })
}

const addPurge = (server: FastifyInstance, { operator, report }: AdminOptions): void => {
  server.post('/cache/purge', async (request, reply) => {
    const reading = readPurgeRequest(request.body)
    if (reading.kind === 'fault') return sendProblem(reply, 400, 'invalid-purge', reading.detail)
    const { selections, mode, dryRun, warm } = reading.request
    const outcome = await operator.purge(reading.request)
    if (outcome.kind === 'refused') return sendProblem(reply, 400, 'invalid-purge', outcome.detail)
    if (outcome.kind === 'unacknowledged') {
      reply.header('retry-after', '1')
      return sendProblem(
        reply,
        503,
        'not-heard',
        'Purged in this instance, but other instances, or a cache in front of the gateway, have not confirmed it.',
      )
    }
    const { entries, warming } = outcome
    const address = request.socket.remoteAddress ?? ''
    const [selector = 'several', ...otherKinds] = new Set(selections.map(({ by }) => by))
    report({
      kind: 'admin-purge',
      address,
      selector: otherKinds.length === 0 ? selector : 'several',
      selectors: selections.length,
      mode,
      dryRun,
      entries,
      warming,
    })
    return reply.send({ entries, mode, dryRun, ...(warm === 0 ? {} : { warming }) })
  })
  server.post('/cache/warm', async (request, reply) => {
    const reading = readWarmRequest(request.body)
    if (reading.kind === 'fault') return sendProblem(reply, 400, 'invalid-warm', reading.detail)
    const response = await operator.warm(reading.request)
    report({ kind: 'admin-warm', address: request.socket.remoteAddress ?? '', warming: response.warming })
    return reply.code(reading.request.wait ? 200 : 202).send(response)
  })
}

export const createAdmin = (options: AdminOptions): FastifyInstance => {
  const server = fastify({
    loggerInstance: options.logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 64 * 1024,
    requestTimeout: 10_000,
    connectionTimeout: silentMs,
    // Node swaps the two times when headersTimeout, by default a minute, is the longer one.
    http: { requestTimeout: 10_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 },
    return503OnClosing: false,
    frameworkErrors: (_error, _request, reply) => void sendProblem(reply, 400, 'invalid-request', unreadable),
  }) as unknown as FastifyInstance
  server.addHook('onSend', async (_request, reply) => {
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    reply.header('x-content-type-options', 'nosniff')
  })
  server.setNotFoundHandler(({ url }, reply) => {
    const path = targetParts(url).path
    const methods = (['GET', 'POST', 'PUT'] as const).filter((method) =>
      server.hasRoute({ method, url: path }),
    )
    if (methods.length === 0)
      return sendProblem(reply, 404, 'not-found', 'No such page. GET / is the status page.')
    const allowed = methods.join(', ')
    return sendProblem(
      reply.header('allow', allowed),
      405,
      'method-not-allowed',
      `This path takes ${allowed}.`,
    )
  })
  server.setErrorHandler((error, _request, reply) => {
    const status = (error as { statusCode?: number }).statusCode ?? 500
    if (status < 500) return sendProblem(reply, status, 'invalid-request', unreadable)
    options.logger.error({ err: error }, 'admin request failed')
    return sendProblem(reply, 500, 'internal', 'See the log.')
  })
  server.server.maxConnections = maxConnections
  server.addHook('onRoute', ({ method, url }) => options.registered?.(String(method), url))
  guard(server, options)
  respondInTurn(server)
  countNoWorkAsSilence(server)
  compressTexts(server)
  server.get('/metrics', async (request, reply) => {
    const { contentType, text } = await options.scrape(request.headers.accept)
    return reply.type(contentType).header('vary', 'Accept').send(text)
  })
  server.get('/livez', async () => ({ status: 'alive' }))
  server.get('/readyz', async (_request, reply) => {
    const { ready, ...facts } = options.readiness()
    const status = ready ? 'ready' : 'not-ready'
    return reply.code(ready ? 200 : 503).send({ status, ...facts })
  })
  server.get('/status', async () =>
    statusReport(await options.metrics(), options.readiness(), options.notices()),
  )
  addPurge(server, options)
  addChanges(server, options.operator, sendProblem)
  addBuilds(server, options.operator, sendProblem)
  addDiagnosis(server, {
    ...options,
    invalid: (reply, code, detail) => sendProblem(reply, 400, code, detail),
  })
  addReloadAndDrain(server, options)
  addViews(server, options.operator)
  addPages(server, options.operator)
  return server
}
