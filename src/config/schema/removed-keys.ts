import type { Path } from '../fault.ts'

/** Keys that earlier versions had; `*` stands for any name. The text says what to write instead. */
const removedKeys: Readonly<Record<string, string>> = {
  'services.*.batch.extensions':
    'removed in 0.1.0: reads and Idempotency-Key work in every batch; send references and items for other services as requests of their own; leave the key out',
  'services.*.batch.services':
    'removed in 0.1.0: send items for another service to that service; leave the key out',
  'services.*.upstream.http2':
    'removed in 0.1.0: upstreams get HTTP/1.1 over connections that are kept; leave the key out',
  'services.*.responseChecks':
    'removed in 0.1.0: responses are not compared with the document any more; leave the section out',
}

/** Keys that people look for, and what has their place here. */
const otherKeys: Readonly<Record<string, string>> = {
  'log.file':
    'unknown key: the log goes to standard output; let systemd, Docker or a shell write it to a file',
  bind: 'unknown key: write listen: { host: 0.0.0.0, port: 8080 }',
  host: 'unknown key: write listen: { host: 0.0.0.0 }',
  port: 'unknown key: write listen: { port: 8080 }',
  server: 'unknown key: write listen: { host: 0.0.0.0, port: 8080 }',
  tls: 'unknown key: write listen: { tls: { cert: file:/path, key: file:/path } }',
  'listen.ssl': 'unknown key: write tls: { cert: file:/path, key: file:/path }',
  redis: 'unknown key: write cache: { shared: { url: "redis://127.0.0.1:6379" } }',
  'cache.redis': 'unknown key: write shared: { url: "redis://127.0.0.1:6379" }',
  routes: 'unknown key: write services: { NAME: { contract: open, mount: /, upstream: ... } }',
  upstreams: 'unknown key: each of services has its own upstream: { targets: [...] }',
  include: 'unknown key: a configuration is one file',
  openapi:
    'unknown key: this is an OpenAPI document; trellis init openapi FILE writes a configuration for it',
  access: 'unknown key: each of services has its own access',
  'cache.rules': 'unknown key: each of services has its own cache: { rules: [...] }',
  'cache.ttl': 'unknown key: each of services has its own cache: { rules: [{ match: GET /**, ttl: 60s }] }',
  'services.*.rateLimits': 'unknown key: rateLimits is beside services, and names the service in each limit',
  'services.*.targets': 'unknown key: write upstream: { targets: ["http://127.0.0.1:3000"] }',
  'services.*.rules': 'unknown key: write cache: { rules: [{ match: GET /**, ttl: 60s }] }',
  'services.*.headers': 'unknown key: write responseHeaders: { set: { Name: value } }',
  'services.*.timeout': 'unknown key: write upstream: { timeouts: { total: 30s } }',
  'metrics.port': 'unknown key: GET /metrics is at admin.port',
  'tracing.endpoint': 'unknown key: write otlpUrl: "http://127.0.0.1:4318"',
  'services.*.path': 'unknown key: write mount: /path',
  'services.*.prefix': 'unknown key: write mount: /path',
  'services.*.auth': 'unknown key: write access: { jwt: ... } or access: { apiKeys: ... }',
  'services.*.cache.ttl': 'unknown key: write rules: [{ match: GET /**, ttl: 60s }]',
  'services.*.upstream.url': 'unknown key: write targets: ["http://127.0.0.1:3000"]',
  'services.*.upstream.retries': 'unknown key: write retry: { attempts: 2 }',
  'services.*.upstream.tls.insecure':
    'unknown key: write acceptAnyCertificate: true, or better ca: file:/path',
  'services.*.upstream.tls.verify': 'unknown key: write acceptAnyCertificate: true, or better ca: file:/path',
  'services.*.upstream.healthCheck': 'unknown key: write health: { path: /health }',
  'services.*.responseHeaders.*': 'unknown key: write set: { Name: value }, or remove: [Name]',
}

/** Added to the fault of a value: what to write. */
const examples: Readonly<Record<string, string>> = {
  'services.*.upstream.targets': 'write ["http://127.0.0.1:3000"]',
  'services.*.upstream.health': 'write { path: /health }',
  'services.*.upstream': 'write { targets: ["http://127.0.0.1:3000"] }',
  'cache.shared': 'write { url: "redis://127.0.0.1:6379" }',
  services: 'write NAME: { contract: open, mount: /, upstream: ... }',
  cors: 'write { origins: ["https://app.example"] }',
  drain: 'write { timeout: 30s }',
  'rateLimits.*.max': 'write max: 10, window: 1m',
  workers: 'write 0 for one for each core',
}

const rowOf = (table: Readonly<Record<string, string>>, path: Path): string | undefined =>
  Object.entries(table).find(([pattern]) => {
    const steps = pattern.split('.')
    return steps.length === path.length && steps.every((step, at) => step === '*' || step === path[at])
  })?.[1]

/** What to do about a key that earlier versions or other programs have; undefined for every other key. */
export const foreignKey = (path: Path): string | undefined =>
  rowOf(removedKeys, path) ?? rowOf(otherKeys, path)

export const exampleOf = (path: Path): string | undefined => rowOf(examples, path)
