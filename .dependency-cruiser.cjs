/** Who may import whom. The picture is in CONTRIBUTING.md; test/structure/layers.test.ts checks that every rule sees modules. */
const rooms = [
  'routing',
  'validation',
  'names',
  'discovery',
  'cache',
  'tags',
  'upstream',
  'batch',
  'openapi',
  'lifecycle',
  'overload',
  'coherence',
  'demo',
]
const base = '^src/(http|contracts)/|^src/(errors|clock)\\.ts$'

/** A room imports itself and the base; what it needs of another is a function handed to its factory. */
const roomRules = rooms.map((room) => ({
  name: `${room}-stays-in-its-room`,
  severity: 'error',
  from: { path: `^src/${room}/` },
  to: { path: '^src/', pathNot: [`^src/${room}/`, base] },
}))

/** Each package lives where its subject lives. */
const packageHomes = {
  fastify: '^src/(edge|admin)/|^src/gateway\\.ts$',
  '@fastify/http-proxy': '^src/edge/',
  '@fastify/cors': '^src/edge/',
  '@fastify/rate-limit': '^src/edge/',
  undici: '^src/upstream/',
  'lru-cache': '^src/cache/',
  'p-limit': '^src/batch/',
  zod: '^src/(config|validation)/',
  yaml: '^src/config/',
  'prom-client': '^src/metrics/',
  pino: '^src/(logging|edge|admin)/',
  ioredis: '^src/shared-tier/',
  '@opentelemetry': '^src/tracing/',
  'close-with-grace': '^src/cli/',
  'swagger-ui-dist': '^src/admin/',
}
const packageRules = Object.entries(packageHomes).map(([name, home]) => ({
  name: `${name.replace(/[@/]/g, '')}-has-one-home`,
  severity: 'error',
  from: { path: '^src/', pathNot: home },
  to: { path: `(^|/)node_modules/${name}/` },
}))

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-orphans', severity: 'error', from: { orphan: true, path: '^src/' }, to: {} },
    {
      name: 'contracts-import-nothing',
      severity: 'error',
      from: { path: '^src/contracts/' },
      to: { pathNot: '^src/contracts/' },
    },
    {
      name: 'http-imports-itself',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/', pathNot: ['^src/http/'] },
    },
    {
      name: 'pipeline-imports-fronts-and-base',
      severity: 'error',
      from: { path: '^src/pipeline/' },
      to: {
        path: '^src/(edge|admin|assembly|config|cli|metrics|logging|demo|discovery|batch)/|^src/(main|gateway)\\.ts$',
      },
    },
    {
      name: 'edge-imports-pipeline-and-base',
      severity: 'error',
      from: { path: '^src/edge/' },
      to: { path: '^src/', pathNot: ['^src/(edge|pipeline)/', base] },
    },
    {
      name: 'admin-imports-base',
      severity: 'error',
      from: { path: '^src/admin/' },
      to: { path: '^src/', pathNot: ['^src/admin/', base] },
    },
    {
      name: 'config-imports-base',
      severity: 'error',
      from: { path: '^src/config/' },
      to: { path: '^src/', pathNot: ['^src/config/', '^src/errors\\.ts$'] },
    },
    {
      name: 'tracing-and-logging-see-exchanges',
      severity: 'error',
      from: { path: '^src/(tracing|logging)/' },
      to: {
        path: '^src/',
        pathNot: [
          '^src/(tracing|logging)/',
          '^src/pipeline/(exchange|exchange-watch)\\.ts$',
          '^src/upstream/events\\.ts$',
          base,
        ],
      },
    },
    {
      name: 'metrics-imports-events',
      severity: 'error',
      from: { path: '^src/metrics/' },
      to: { path: '^src/', pathNot: ['^src/metrics/', '^src/[^/]+/events\\.ts$', '^src/errors\\.ts$'] },
    },
    {
      name: 'cli-imports-config',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/', pathNot: ['^src/(cli|config)/'] },
    },
    {
      name: 'only-gateway-and-assembly-know-all',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/assembly/', '^src/(main|gateway)\\.ts$'] },
      to: { path: '^src/assembly/|^src/(main|gateway)\\.ts$' },
    },
    // Both keep a ledger by the port that coherence defines.
    ...['workers', 'shared-tier'].map((room) => ({
      name: `${room}-stays-in-its-room`,
      severity: 'error',
      from: { path: `^src/${room}/` },
      to: { path: '^src/', pathNot: [`^src/${room}/`, '^src/coherence/ledger\\.ts$', base] },
    })),
    ...roomRules,
    ...packageRules,
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
