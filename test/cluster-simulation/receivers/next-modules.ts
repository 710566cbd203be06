import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

const packageFolder = fileURLToPath(new URL('../../../packages/next/', import.meta.url))

const entry = `
import Handler from './cache-handler.js'
import { createPurgeRoute } from './index.js'
export { Handler, createPurgeRoute }
`

/** What a process of its own has, in place of the global one; nothing of Next.js is loaded. */
const stubs: Readonly<Record<string, string>> = {
  'next/cache': 'export const revalidateTag = () => undefined; export const cacheTag = undefined',
  'node:diagnostics_channel': `
    const { channel, tracingChannel } = require('diagnostics_channel')
    const subscribe = () => undefined
    export { channel, subscribe, tracingChannel }`,
  'node:crypto': `
    const { createHmac, timingSafeEqual } = require('crypto')
    const randomUUID = () => own.id
    export { createHmac, randomUUID, timingSafeEqual }`,
}

const stubbed: Plugin = {
  name: 'stubs',
  setup: ({ onLoad, onResolve }) => {
    onResolve({ filter: /^(?:next\/cache|node:(?:diagnostics_channel|crypto))$/ }, ({ path }) => ({
      path,
      namespace: 'stub',
    }))
    onLoad({ filter: /.*/, namespace: 'stub' }, ({ path }) => ({ contents: stubs[path] ?? '' }))
  },
}

/** The modules of packages/next as the body of a function, which has a memory and clocks of its own each time that it is called. */
const functionBody = async (planting: Plugin): Promise<string> => {
  const { outputFiles } = await build({
    stdin: { contents: entry, resolveDir: packageFolder },
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'receiver',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
    define: {
      globalThis: 'own.globals',
      'performance.now': 'own.now',
      'performance.timeOrigin': '0',
      'Date.now': 'own.wall',
    },
    plugins: [stubbed, planting],
  })
  return `${outputFiles[0]?.text ?? ''}\nreturn receiver`
}

/** `planting`: faults. What load-next.ts is in the bundle. */
export const nextModules = (planting: Plugin): Plugin => ({
  name: 'next',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\/receivers\/load-next\.ts$/ }, async () => ({
      contents: `
        const load = new Function('own', 'require', ${JSON.stringify(await functionBody(planting))})
        export const loadNext = (facts) => {
          const { Handler, createPurgeRoute } = load({ ...facts, globals: {} }, require)
          return { Handler, route: (secret) => createPurgeRoute({ secret }) }
        }`,
    }))
  },
})
