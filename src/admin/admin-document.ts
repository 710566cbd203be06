/** An operation of the admin side; paths as OpenAPI writes them. */
type Operation = {
  readonly summary: string
  readonly query?: Readonly<Record<string, { readonly description: string; readonly required?: boolean }>>
  /** Members of a JSON object. */
  readonly content?: Readonly<Record<string, object>>
  /** Status of success and media type, where they are not 200 and JSON. */
  readonly status?: number
  readonly type?: string
  /** Needs no admin.token. */
  readonly isOpen?: boolean
}

const text = { type: 'string' }
const texts = { type: 'array', items: text }
const flag = { type: 'boolean' }

/** Every operation but the files of the pages. A test compares it with the routes. */
const operations: Readonly<Record<string, Operation>> = {
  'GET /': { summary: 'The status page', type: 'text/html' },
  'GET /docs': { summary: 'This page', type: 'text/html' },
  'GET /status': { summary: 'What the status page shows' },
  'GET /metrics': { summary: 'Metrics for Prometheus', type: 'text/plain', isOpen: true },
  'GET /livez': { summary: 'Does the process run?', isOpen: true },
  'GET /readyz': { summary: 'Should a balancer send requests? 503: no', isOpen: true },
  'GET /history': {
    summary: 'The last hour',
    query: { service: { description: 'Of this service; all together without it' } },
  },
  'GET /recent': { summary: 'The last errors, refusals, invalidations and writes that removed nothing' },
  'GET /log-level': { summary: 'Level of the log' },
  'PUT /log-level': { summary: 'Changes the level of the log', content: { level: text, for: text } },
  'GET /cache/entries': {
    summary: 'Stored responses',
    query: {
      sort: { description: 'size, hits or age' },
      limit: { description: '1 to 1000' },
    },
  },
  'GET /explain': {
    summary: 'How a request would be handled',
    query: {
      url: { description: 'Public URL or path', required: true },
      method: { description: 'GET without it' },
      header: { description: 'A field of the request, as "Name: value"' },
    },
  },
  'GET /drift': { summary: 'How sites differ from their contract' },
  'GET /config': { summary: 'The active configuration without secrets' },
  'GET /openapi.json': { summary: 'The OpenAPI document of all services' },
  'GET /openapi/{name}.json': { summary: 'The OpenAPI document of one service' },
  'GET /admin-openapi.json': { summary: 'This document' },
  'POST /cache/purge': {
    summary: 'Removes stored responses',
    content: {
      ...{ url: text, urls: texts, tag: text, tags: texts, prefix: text, prefixes: texts, all: flag },
      ...{
        service: text,
        mode: { enum: ['hard', 'soft'] },
        dryRun: flag,
        warm: { type: ['boolean', 'integer'] },
      },
    },
  },
  'POST /cache/warm': {
    summary: 'Fetches URLs into the cache; 200 with wait',
    content: { urls: texts, wait: flag },
    status: 202,
  },
  'POST /builds': {
    summary: 'Begins a build of a site generator; with since, tells what has changed since that build',
    content: { since: text },
    status: 201,
  },
  'GET /builds/{build}': { summary: 'What has changed since a build' },
  'POST /changes': {
    summary: 'Changes that a service reports, with its own token (docs/changes.md)',
    content: {},
    isOpen: true,
  },
  'POST /reload': { summary: 'Reads the configuration file again' },
  'POST /drain': { summary: 'Finishes requests in flight, and ends the program', status: 202 },
}

const parametersOf = (path: string, { query = {} }: Operation): readonly object[] => [
  ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: text })),
  ...Object.entries(query).map(([name, { description, required = false }]) => ({
    ...{ name, in: 'query', required, description, schema: text },
  })),
]

const described = (path: string, operation: Operation): object => {
  const { summary, content, status = 200, type = 'application/json', isOpen = false } = operation
  const body = { 'application/json': { schema: { type: 'object', properties: content } } }
  return {
    summary,
    parameters: parametersOf(path, operation),
    ...(content === undefined ? {} : { requestBody: { required: true, content: body } }),
    responses: {
      [status]: { description: 'Done', content: { [type]: {} } },
      default: { description: 'Refused', content: { 'application/problem+json': {} } },
    },
    ...(isOpen ? { security: [] } : {}),
  }
}

export const adminDocument = (): object => {
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = name.split(' ')
    paths[path] = { ...paths[path], [method.toLowerCase()]: described(path, operation) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Trellis: admin side', version: '1' },
    servers: [{ url: '.' }],
    // Without admin.token no credential is needed.
    security: [{}, { token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'admin.token' } },
    },
  }
}
