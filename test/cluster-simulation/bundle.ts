import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { type Fault, planted } from '../support/planted.ts'
import { nextModules } from './receivers/next-modules.ts'

const folder = fileURLToPath(new URL('./', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))

/** Modules of Node and packages that are simulated. */
const replaced: Readonly<Record<string, string>> = {
  ioredis: 'ioredis.ts',
  'node:cluster': 'cluster.ts',
  'node:crypto': 'crypto.ts',
  'node:timers/promises': 'timers-promises.ts',
  undici: 'undici.ts',
}

/** A fault in one file of src, or of packages/next. */
export type ProtocolFault = Fault & { readonly file: string }

/** With as few invalidations as this the ledger and the members forget some in each run. */
const fewInvalidations: ProtocolFault = {
  name: 'few notes',
  file: 'src/cluster/ledger.ts',
  right: 'maxLedgerEntries = 16_384',
  wrong: 'maxLedgerEntries = 4',
}

const replacing: Plugin = {
  name: 'simulation',
  setup: ({ onResolve }) => {
    onResolve(
      { filter: /^(?:ioredis|undici|node:(?:cluster|crypto|timers\/promises))$/ },
      ({ importer, path }) =>
        importer.startsWith(join(folder, 'replaced'))
          ? undefined
          : { path: join(folder, 'replaced', replaced[path] ?? '') },
    )
  },
}

const plantingOf = (fault: ProtocolFault | undefined): Plugin => ({
  name: 'faults',
  setup: ({ onLoad }) => {
    const changes = fault === undefined ? [fewInvalidations] : [fewInvalidations, fault]
    onLoad({ filter: /\/(?:src|packages\/next)\/.*\.[jt]s$/ }, async ({ path }) => {
      const own = changes.filter(({ file }) => path === join(root, file))
      if (own.length === 0) return undefined
      const contents = own.reduce(planted, await readFile(path, 'utf8'))
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' }
    })
  },
})

/** Writes the program of the simulation, with a fault in it or without, and returns its path. */
export const bundleSimulation = async (fault?: ProtocolFault): Promise<string> => {
  const planting = plantingOf(fault)
  const outfile = join(await mkdtemp(join(tmpdir(), 'trellis-simulation-')), 'simulation.mjs')
  await build({
    entryPoints: [join(folder, 'run-seeds.ts')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    outfile,
    logLevel: 'error',
    inject: [join(folder, 'replaced/globals.ts')],
    define: {
      // Of modules right below the package's folder, which find its files by it (src/package-file.ts).
      'import.meta.url': JSON.stringify(pathToFileURL(join(root, 'src/main.ts')).href),
      'Math.random': 'simulatedRandom',
      'Date.now': 'simulatedNow',
      'performance.now': 'simulatedPerformanceNow',
    },
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    plugins: [nextModules(planting), replacing, planting],
  })
  return outfile
}
