import { pause } from '../../support/origin.ts'
import { type RedisServer, startRedisServer } from './redis-server.ts'

const slots = 16_384
const ledgerKey = '{trellis}:ledger'

/** Real nodes that are one cluster. */
export type RedisCluster = {
  readonly nodes: readonly RedisServer[]
  /** Who serves the slot of the ledger, as the nodes that answer agree. */
  holder(): Promise<RedisServer>
  /** Moves the slot of the ledger, as operators do: its keys one by one, so long after each other, and then whose it is. */
  moveLedger(to: RedisServer, betweenMs: number): Promise<void>
  /** Until all nodes take it for a master, or for a replica that is in step. */
  untilRole(node: RedisServer, role: 'master' | 'slave'): Promise<void>
  stop(): Promise<void>
}

export type RedisClusterOptions = {
  readonly masters: number
  /** Nodes that follow the one which holds the ledger. */
  readonly replicas: number
  readonly settings: (node: number) => readonly string[]
}

type Row = { readonly id: string; readonly port: number; readonly flags: string; readonly slots: string }

const rowsOf = (response: string): readonly Row[] =>
  [...response.matchAll(/^([0-9a-f]{40}) \S*?:(\d+)@\S* (\S+) \S+ \d+ \d+ \d+ \S+ ?(.*)$/gm)].map(
    ([, id = '', port, flags = '', held = '']) => ({ id, port: Number(port), flags, slots: held.trim() }),
  )

const holds = ({ flags, slots: held }: Row, slot: number): boolean =>
  flags.includes('master') &&
  !/fail/.test(flags) &&
  held.split(' ').some((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return first !== undefined && last !== undefined && first <= slot && slot <= last
  })

const numberOf = (response: string): number => Number(response.slice(1).trim())
const linesOf = (response: string): readonly string[] =>
  response.split('\r\n').filter((line) => line !== '' && !/^[*$]/.test(line))

const startedNodes = ({ masters, replicas, settings }: RedisClusterOptions): Promise<RedisServer[]> =>
  Promise.all(
    Array.from({ length: masters + replicas }, (_, at) =>
      startRedisServer('--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', ...settings(at)),
    ),
  )

/** Starts the nodes; the masters hold the slots in equal parts. */
export const startRedisCluster = async (options: RedisClusterOptions): Promise<RedisCluster> => {
  const nodes = await startedNodes(options)
  const masters = nodes.slice(0, options.masters)
  const first = masters[0] as RedisServer
  const firstSlot = (node: number): number => Math.floor((slots * node) / masters.length)
  const slot = numberOf(await first.command('CLUSTER', 'KEYSLOT', ledgerKey))
  const rows = async (node: RedisServer): Promise<readonly Row[]> =>
    rowsOf(await node.command('CLUSTER', 'NODES'))
  const idOf = async (node: RedisServer): Promise<string> =>
    linesOf(await node.command('CLUSTER', 'MYID'))[0] as string
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (let tries = 0; tries < 1_600; tries += 1) {
      if (await isSo().catch(() => false)) return
      await pause(25)
    }
    throw new Error(`the cluster does not get there: ${what}`)
  }

  for (const [at, node] of nodes.entries()) {
    if (at < masters.length) {
      await node.command('CLUSTER', 'ADDSLOTSRANGE', `${firstSlot(at)}`, `${firstSlot(at + 1) - 1}`)
    }
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1))
    if (at > 0) await node.command('CLUSTER', 'MEET', '127.0.0.1', String(first.port), String(first.busPort))
  }
  for (const node of nodes) {
    await until('all nodes know each other', async () => {
      const isWhole = (await node.command('CLUSTER', 'INFO')).includes('cluster_state:ok')
      return isWhole && (await rows(node)).length === nodes.length
    })
  }

  const holder = async (): Promise<RedisServer> => {
    for (const node of nodes) {
      const known = await rows(node).catch(() => [])
      const port = known.find((row) => holds(row, slot))?.port
      const found = nodes.find((one) => one.port === port)
      if (found !== undefined) return found
    }
    throw new Error('nobody holds the ledger')
  }
  const untilRole = (node: RedisServer, role: 'master' | 'slave'): Promise<void> =>
    until(`${node.port} is ${role}`, async () => {
      const known = await Promise.all(nodes.map((one) => rows(one).catch(() => [])))
      const isKnown = known.every((list) =>
        list.every(({ port, flags }) => port !== node.port || (flags.includes(role) && !/fail/.test(flags))),
      )
      const state = await node.command('INFO', 'replication')
      return isKnown && (role === 'master' || state.includes('master_link_status:up'))
    })

  if (options.replicas > 0) {
    const master = await holder()
    for (const node of nodes.slice(options.masters)) {
      await node.command('CLUSTER', 'REPLICATE', await idOf(master))
      await untilRole(node, 'slave')
    }
  }
  return {
    nodes,
    holder,
    untilRole,
    moveLedger: async (to, betweenMs) => {
      const from = await holder()
      const [idFrom, idTo] = [await idOf(from), await idOf(to)]
      await to.command('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', idFrom)
      await from.command('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', idTo)
      for (;;) {
        await pause(betweenMs)
        const [key] = linesOf(await from.command('CLUSTER', 'GETKEYSINSLOT', String(slot), '1'))
        if (key === undefined) break
        await from.command('MIGRATE', '127.0.0.1', String(to.port), key, '0', '1000')
      }
      for (const node of [to, from, ...nodes.filter((one) => one !== to && one !== from)]) {
        await node.command('CLUSTER', 'SETSLOT', String(slot), 'NODE', idTo).catch(() => '')
      }
    },
    stop: async () => {
      for (const node of nodes) await node.stop()
    },
  }
}
