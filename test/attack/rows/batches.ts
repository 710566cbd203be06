import {
  type AttackRow,
  all,
  blockedFor,
  fault,
  riseAbove,
  row,
  type Seen,
  type Tree,
} from '../attack-row.ts'
import { ask, attacker, attackers } from '../clients.ts'
import { leaveUnread, type Tally } from '../holding.ts'
import type { Scene } from '../scene.ts'
import { site, siteReads, siteService } from '../services.ts'

// Batches: many requests in one, whose responses are collected.

const settings = ({ upstream }: Pick<Scene, 'upstream'>): Tree => ({
  services: { site: siteService(upstream, { batch: { split: 'item' } }) },
})

const batch = (requests: readonly unknown[]): string => JSON.stringify({ requests })

const path = `${site}/batch/v1`
const headers = { 'Content-Type': 'application/json' }

const post = (content: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`

let number = 0
/** 25 reads of 2.5 MB each, of targets that were never read before. */
const largeReads = (): string =>
  batch(
    Array.from({ length: 25 }, () => {
      number += 1
      return { method: 'GET', path: `/site/v2/pages?search=${number}` }
    }),
  )

/** Text of nested lists with many small values at the bottom. */
const nested = (depth: number, value: string, count: number): string =>
  `${'['.repeat(depth)}${`${value},`.repeat(count)}1${']'.repeat(depth)}`

const deep = (value: string): string =>
  `{"requests":[{"path":"/site/v2/posts","body":{"title":"a"}},` +
  `{"path":"/site/v2/posts","body":{"title":"b","meta":{"deep":${value}}}}]}`

const costly: readonly (readonly [title: string, content: string])[] = [
  ['50 lists around 100,000 objects', deep(nested(50, '{}', 280_000))],
  ['50 lists around 100,000 strings', deep(nested(50, '"abcd"', 120_000))],
  ['50 lists around escaped text', deep(nested(50, `"${'\\"'.repeat(400)}"`, 900))],
  [
    '50 objects around 100,000 numbers',
    deep(`${'{"a":'.repeat(50)}[${'1,'.repeat(400_000)}1]${'}'.repeat(50)}`),
  ],
  [
    '100,000 members of one object',
    deep(`{${Array.from({ length: 80_000 }, (_, at) => `"${at}":0`).join(',')}}`),
  ],
]

type Responded = readonly (readonly [title: string, status: number, ms: number])[]

export const batchRows: readonly AttackRow[] = [
  row<Responded>({
    name: 'batch-contents',
    description: 'Large and deep contents do not stop the event loop for 200 ms.',
    settings,
    reads: siteReads,
    attack: async (scene) => {
      const responses: (readonly [string, number, number])[] = []
      for (const [title, content] of costly) {
        const { status, ms } = await ask(scene.origin, path, {
          method: 'POST',
          headers,
          content,
          timeoutMs: 20_000,
        })
        responses.push([title, status, Math.round(ms)])
      }
      return responses
    },
    verdict: all(blockedFor(200), ({ found }: Seen<Responded>) =>
      found.flatMap(([title, status]) => (status === 0 ? [fault(`${title}: no answer`)] : [])),
    ),
  }),
  row<Tally>({
    name: 'batches-unread',
    description: '16 batches of 25 reads of 2.5 MB are not read.',
    settings,
    reads: siteReads,
    attack: (scene, signal) =>
      leaveUnread(scene, signal, { sockets: 16, addresses: [attacker], bytes: post(largeReads()) }),
    verdict: riseAbove(300),
  }),
  row<Tally>({
    name: 'batches-unread-from-20',
    description: '60 batches of 25 reads of 2.5 MB are not read by 20 addresses.',
    settings,
    reads: siteReads,
    attack: (scene, signal) =>
      leaveUnread(scene, signal, { sockets: 60, addresses: attackers(20), bytes: post(largeReads()) }),
    verdict: riseAbove(300),
  }),
  row<Responded>({
    name: 'batches-mixed',
    description:
      'Large batches with deep contents, reads and writes come one after the other on four connections.',
    settings,
    reads: siteReads,
    attack: async (scene, signal) => {
      const responses: (readonly [string, number, number])[] = []
      const one = async (at: number): Promise<void> => {
        for (let turn = at; !signal.aborted; turn += 1) {
          const [title, content] =
            turn % 3 === 0 ? ['large reads', largeReads()] : (costly[turn % costly.length] ?? ['', ''])
          const { status, ms } = await ask(scene.origin, path, { method: 'POST', headers, content })
          responses.push([title, status, Math.round(ms)])
        }
      }
      await Promise.all([0, 1, 2, 3].map(one))
      return responses
    },
    verdict: all(riseAbove(300), blockedFor(400)),
  }),
]
