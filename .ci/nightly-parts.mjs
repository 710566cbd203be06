/** What touches Node's own interfaces: sockets, HTTP, TLS, streams, processes. */
const touchNode = [
  ...['test/conformance', 'test/exchange', 'test/gateway', 'test/unit/cluster', 'test/unit/http'],
  ...['test/unit/observability', 'test/unit/server', 'test/support', 'test/unit/upstream'],
]

const script = (name, ...args) => [
  'npm',
  'run',
  '--silent',
  name,
  ...(args.length > 0 ? ['--', ...args] : []),
]

/** The line of Vitest. */
const tests = /^ *Tests +(.+)$/gm

/**
 * The parts of a night: `figures` finds in the output what the page shows; `short` is what takes a minute.
 * @type {readonly {
 *   name: string, title: string, command: string[], figures: RegExp, env?: Record<string, string>, needsNodeOfImage?: boolean,
 *   short?: { command?: string[], env?: Record<string, string> },
 * }[]}
 */
export const parts = [
  {
    name: 'node',
    title: 'npm test with the Node of the image',
    command: ['npm', 'test', '--silent', '--', ...touchNode],
    needsNodeOfImage: true,
    figures: tests,
    short: { command: ['npm', 'test', '--silent', '--', 'test/unit/http', 'test/unit/server'] },
  },
  {
    name: 'tests',
    title: 'all tests, every row',
    command: ['npx', 'vitest', 'run'],
    env: { TRELLIS_TESTS: 'all' },
    figures: tests,
    short: { command: ['npx', 'vitest', 'run', 'test/unit/config/documents-of-many-files'] },
  },
  {
    name: 'attacks',
    title: 'every attack for ten seconds',
    command: script('attack'),
    figures: /^\d+ held, \d+ broken, \d+ not run$/gm,
    short: { command: script('attack', '--seconds', '2', '--only', 'forged-tokens') },
  },
  {
    name: 'soak',
    title: 'mixed load with faults',
    command: script('soak'),
    env: { SOAK_SECONDS: '600' },
    figures: /"(?:heapGrowthMiB|bytesPerRequest)":(?:[\d.-]+|\{[^}]*\})/g,
    short: { env: { SOAK_SECONDS: '10' } },
  },
  {
    name: 'clusters',
    title: 'simulated clusters',
    command: script('simulate:cluster', '--first', '1', '--seeds', '2000'),
    figures: /"(?:seeds|reads|hits|writes|violations)":\d+/g,
    short: { command: script('simulate:cluster', '--first', '1', '--seeds', '8') },
  },
  {
    name: 'writes',
    title: 'random writes through one process and several',
    command: script('fuzz:writes'),
    figures: /^.+: \{"writes":\d+,"reads":\d+,"hits":\d+.*"older":\d+\}$/gm,
    short: { env: { WRITES: '40' } },
  },
  {
    name: 'exchanges',
    title: 'random exchanges',
    command: script('fuzz:mixed'),
    figures: /"exchanges":\d+|"perSecond":\d+|"heapGrowthMiB":[\d.-]+/g,
    short: { env: { MIXED_EXCHANGES: '2000' } },
  },
  {
    name: 'raw',
    title: 'random raw requests',
    command: script('fuzz:raw'),
    figures: tests,
    short: { env: { RAW_VARIANTS: '600' } },
  },
  {
    name: 'faults-in-companion',
    title: 'faults planted in the companion',
    command: script('fuzz:promise', '--plant-companion'),
    figures: /^\d+ of \d+ faults found$/gm,
    short: { env: { PROMISE_PLANT: 'sticky' } },
  },
  {
    name: 'faults-in-writes',
    title: 'faults planted in the life of a write',
    command: script('fuzz:promise', '--plant-write'),
    figures: /^\d+ of \d+ faults found$/gm,
    short: { env: { PROMISE_PLANT: 'partly sent is not noted' } },
  },
  {
    name: 'laws-of-openapi',
    title: 'laws of OpenAPI keys',
    command: script('laws:openapi'),
    figures: tests,
    short: { env: { OPENAPI_LAWS: '3000' } },
  },
  {
    name: 'laws-of-graphql',
    title: 'laws of GraphQL keys',
    command: script('laws:graphql'),
    figures: /^\d+ documents: .*$/gm,
    short: { env: { GRAPHQL_DOCUMENTS: '3000' } },
  },
  {
    name: 'invented-documents',
    title: 'a million GraphQL documents of one address',
    command: ['npx', 'vitest', 'run', 'test/gateway/hostile/invented-documents.nightly.test.ts'],
    env: { TRELLIS_TESTS: 'all' },
    figures: /^\d+ invented documents: .*$/gm,
    short: { env: { INVENTED_DOCUMENTS: '20000' } },
  },
  {
    name: 'graphql-writes',
    title: 'random writes to a WordPress with WPGraphQL',
    command: script('fuzz:graphql'),
    env: { WRITES: '500' },
    figures: /^\|.*\|$/gm,
    short: { command: script('fuzz:graphql', 'companion'), env: { WRITES: '5' } },
  },
  {
    name: 'sites',
    title: 'real sites, all sets of plugins',
    command: script('sites'),
    figures: /^\S+ on \S+, with(?:out)? the companion: .*$/gm,
    short: { command: script('sites', 'none') },
  },
]
