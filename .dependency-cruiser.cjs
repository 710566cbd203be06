/** Who may import whom. The table is in CONTRIBUTING.md; test/structure/layers.long.test.ts checks that every rule fires. */

/** Each folder imports only from the levels below its own, and from itself. */
const levels = [
  ['http'],
  ['config', 'cache', 'upstream'],
  ['service'],
  ['wordpress', 'openapi', 'graphql'],
  ['exchange'],
  ['batch', 'server', 'cluster', 'downstream'],
  ['observability'],
  ['admin'],
  ['gateway'],
]
/**
 * A contract has a module of its own: no contract module imports another, and only `gateway`, which composes the gateway, imports one.
 * So do these files; a test fails when one of them needs it no more.
 */
const contractModules = {
  wordpress: [
    'src/admin/changes.ts',
    'src/admin/operator.ts',
    'src/observability/metrics.ts',
    'src/observability/metrics/observe-events.ts',
  ],
  openapi: ['src/cli/document-config.ts', 'src/load-document.ts', 'src/main.ts'],
  graphql: [],
}
/** Files at the top of src that every folder may import. */
const shared = '^src/(errors|clock|package-file|system-lookup)\\.ts$'

const levelRules = levels.flatMap((folders, level) =>
  folders.map((folder) => ({
    name: `${folder}-imports-downward`,
    severity: 'error',
    from: { path: `^src/${folder}/` },
    to: {
      path: '^src/',
      pathNot: [
        `^src/${folder}/`,
        `^src/(${['no-folder', ...levels.slice(0, level).flat(), ...Object.keys(contractModules)].join('|')})/`,
        shared,
      ],
    },
  })),
)

const contractRules = Object.entries(contractModules).map(([contract, files]) => ({
  name: `${contract}-is-a-contract-module`,
  severity: 'error',
  from: {
    path: '^(src|demo)/',
    pathNot: [
      `^src/(${contract}|gateway)/`,
      '^demo/',
      ...files.map((file) => `^${file.replaceAll('.', '\\.')}$`),
    ],
  },
  to: { path: `^src/${contract}/` },
}))

/** Subfolders are private to their folder; http and the contract modules are open. */
const open = ['http', ...Object.keys(contractModules)]
const privacyRules = levels
  .flat()
  .filter((folder) => !open.includes(folder))
  .map((folder) => ({
    name: `subfolders-of-${folder}-are-private`,
    severity: 'error',
    from: { path: '^(src|demo)/', pathNot: `^src/${folder}/` },
    to: { path: `^src/${folder}/[^/]+/` },
  }))

/** Each package lives where its subject lives. */
const packageHomes = {
  fastify: '^src/(server|admin)/',
  '@fastify/http-proxy': '^src/server/',
  undici: '^src/(upstream|downstream)/',
  graphql: '^src/graphql/',
  'lru-cache': '^src/(cache|server|graphql)/',
  'p-limit': '^src/batch/',
  zod: '^src/config/',
  yaml: '^src/(config|openapi)/',
  'prom-client': '^src/observability/',
  pino: '^src/(observability|server|admin)/',
  ioredis: '^src/cluster/',
  '@opentelemetry': '^src/observability/',
  'close-with-grace': '^src/cli/',
  commander: '^src/cli/',
  jose: '^src/server/access/',
  re2js: '^src/(service|openapi)/',
  ajv: '^src/openapi/',
  'structured-headers': '^src/http/',
  'swagger-ui-dist': '^src/admin/',
}
const packageRules = Object.entries(packageHomes).map(([name, home]) => ({
  name: `${name.replace(/[@/]/g, '')}-has-one-home`,
  severity: 'error',
  from: { path: '^(src|demo)/', pathNot: home },
  to: { path: `(^|/)node_modules/${name}/` },
}))

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-orphans', severity: 'error', from: { orphan: true, path: '^(src|demo)/' }, to: {} },
    {
      name: 'http-imports-itself',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^src/', pathNot: '^src/http/' },
    },
    {
      name: 'cli-imports-config',
      severity: 'error',
      from: { path: '^src/cli/' },
      // Commands load the gateway with the ports that main.ts hands in.
      to: {
        path: '^src/',
        pathNot: ['^src/(cli|config|http)/', '^src/gateway/load-config\\.ts$'],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'only-the-top-imports-the-top',
      severity: 'error',
      from: { path: '^src/[^/]+/', pathNot: '^src/cli/' },
      to: { path: '^src/(main|gateway|workers)\\.ts$' },
    },
    {
      name: 'demo-imports-what-every-service-needs',
      severity: 'error',
      from: { path: '^demo/' },
      to: { path: '^src/', pathNot: ['^src/(http|service|wordpress|openapi)/', shared] },
    },
    {
      // With `import()`: a gateway without embedded upstreams does not load it.
      name: 'gateway-loads-the-demo-when-it-is-used',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^demo/', dynamic: false },
    },
    {
      name: 'only-gateway-loads-the-demo',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/gateway/' },
      to: { path: '^demo/' },
    },
    ...levelRules,
    ...contractRules,
    ...privacyRules,
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
