import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { documentOf, grouped, indexOf, routesOf } from '../../support/large-documents.ts'
import { longestTurn } from '../../support/long-turns.ts'
import { type AttackRow, type Fault, faultsOf, row, type Seen } from '../attack-row.ts'
import { ask } from '../clients.ts'
import { originOf, type Scene, scriptedOrigin } from '../scene.ts'
import { openService, siteService } from '../services.ts'

// What plugins announce and operators describe may be large: reading it delays nobody.

const json = { 'Content-Type': 'application/json' }
const types = ['integer', 'string', 'number']
const maxTurnMs = 50
/** The process reports a turn when it has ended. */
const reportedMs = 100

/**
 * What was found, and the longest turn of each round in processor time. The shortest of them counts: on a machine that is busy the
 * garbage collector waits for its threads, and that is most of such a turn.
 */
type Rounds = { readonly faults: readonly string[]; readonly turns: readonly number[] }

const heldRounds = ({ found: { faults, turns } }: Seen<Rounds>): readonly Fault[] => [
  ...faultsOf(faults),
  ...(Math.min(...turns) <= maxTurnMs
    ? []
    : [{ text: `turns of the event loop took ${turns.join(', ')} ms`, isLatency: true }]),
]

/** Rounds one after the other until the signal, and three at least. */
const inRounds = async (
  { gateway: { program } }: Scene,
  signal: AbortSignal,
  round: (number: number) => Promise<string | undefined>,
): Promise<Rounds> => {
  const faults: string[] = []
  const turns: number[] = []
  while (faults.length === 0 && (turns.length < 3 || !signal.aborted)) {
    const turn = await longestTurn(program, async () => {
      const fault = await round(turns.length)
      if (fault !== undefined) faults.push(fault)
      await sleep(reportedMs)
    })
    turns.push(turn)
  }
  return { faults, turns }
}

/** Asks for the path until it is there. */
const untilServed = async ({ origin }: Scene, path: string): Promise<boolean> => {
  for (let tries = 0; tries < 600; tries += 1) {
    if ((await ask(origin, path)).status === 200) return true
    await sleep(50)
  }
  return false
}

const folderOf = async ({ resources }: Pick<Scene, 'resources'>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-attack-'))
  resources.add(() => rm(folder, { recursive: true, force: true }))
  return folder
}

const large = 10_000
const paths = 3_000

export const documentRows: readonly AttackRow[] = [
  row<Rounds>({
    name: 'index-of-10000',
    description: 'The index of a site announces 10,000 routes, whose arguments change at each refresh.',
    settings: async (scene) => {
      let refreshes = 0
      const origin = await scriptedOrigin(scene, ({ target }, wire) => {
        if (!target.startsWith('/wp-json/')) return wire.respond({ headers: json, content: '{}' })
        const type = types[refreshes % types.length]
        refreshes += 1
        const routes = {
          ...routesOf(large, grouped, type),
          ...routesOf(1, () => `/plug/v1/refresh${refreshes}`),
        }
        wire.respond({ headers: json, content: indexOf(origin.origin, routes) })
      })
      return {
        services: {
          open: openService(scene.upstream),
          site: siteService(origin.origin, {
            unlistedRoutes: 'learn',
            discovery: { source: 'upstream', refresh: '500ms' },
            upstream: { basePath: '/wp-json' },
          }),
        },
      }
    },
    attack: (scene, signal) => {
      const refreshes = (): number =>
        originOf(scene).received.filter(({ target }) => target.startsWith('/wp-json/')).length
      return inRounds(scene, signal, async () => {
        const before = refreshes()
        const latest = performance.now() + 30_000
        while (refreshes() < before + 2 && performance.now() < latest) await sleep(50)
        return refreshes() < before + 2 ? 'the index was not read again in 30 seconds' : undefined
      })
    },
    verdict: heldRounds,
  }),
  row<Rounds>({
    name: 'document-of-3000',
    description: 'An OpenAPI document of 3,000 paths, all of them changed, is read again and again.',
    settings: async (scene) => {
      const document = join(await folderOf(scene), 'openapi.json')
      await writeFile(document, documentOf(paths, 'first'))
      return {
        services: {
          open: openService(scene.upstream),
          described: {
            contract: 'openapi',
            mount: '/described',
            document,
            upstream: { targets: [scene.upstream] },
          },
        },
      }
    },
    attack: async (scene, signal) => {
      const { services } = scene.settings as { services: { described: { document: string } } }
      return inRounds(scene, signal, async (number) => {
        const count = paths + 1 + number
        await writeFile(services.described.document, documentOf(count, `of ${count}`))
        await scene.gateway.reload(scene.settings)
        const isServed = await untilServed(scene, `/described/things${count - 1}/5`)
        return isServed ? undefined : `the document of ${count} paths was never served`
      })
    },
    verdict: heldRounds,
  }),
]
