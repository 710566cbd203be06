import { readFileSync } from 'node:fs'
import { systemClock } from '../../../../src/clock.ts'
import type { DiscoveryEvent } from '../../../../src/service/connection.ts'
import {
  createDiscovery,
  type Discovery,
  type DiscoveryOptions,
} from '../../../../src/wordpress/index/discovery.ts'
import { type IndexDocument, readIndex } from '../../../../src/wordpress/index/index-document.ts'
import type { DiscoveryDocument } from '../../../../src/wordpress/index/site-index.ts'
import { keyNames, namespaceNames, segmentNames } from '../../../../src/wordpress/names/name-table.ts'
import { createNames } from '../../../../src/wordpress/names/names.ts'
import { siteRows } from '../../../../src/wordpress/routes/route-table.ts'

export const publicRoot = 'http://gateway.test/index.php/site-json'
export const upstreamRoot = 'http://wordpress.test/index.php/wp-json'

/** The index of a real WordPress 6.9 with Contact Form 7. */
export const realIndex = readFileSync(
  new URL('../../../contracts/fixtures/discovery-wordpress-6.9.json', import.meta.url),
)

export const table = { namespaces: namespaceNames, keys: keyNames, segments: segmentNames }

const names = createNames({
  mode: 'wordpress',
  table,
  publicRoot,
  learned: { root: undefined },
  upstreamRoots: () => [upstreamRoot],
})

/** The same under public names, as any JSON value. */
export const publicDocument = (): { routes: Record<string, never>; [name: string]: unknown } =>
  JSON.parse(names.fromUpstreamDocument(realIndex).toString())

export const indexOf = (document: unknown): IndexDocument => {
  const reading = readIndex(Buffer.from(JSON.stringify(document)))
  if (reading.kind === 'refused') throw new Error(reading.reason)
  return reading.index
}

export type Watched = {
  readonly discovery: Discovery
  readonly events: DiscoveryEvent[]
  readonly learned: string[][]
}

/** Discovery as the gateway builds it, asking `fetchIndex`. */
export const watched = (changed: Partial<DiscoveryOptions> = {}): Watched => {
  const events: DiscoveryEvent[] = []
  const learned: string[][] = []
  const discovery = createDiscovery({
    service: 'site',
    clock: systemClock,
    rows: siteRows,
    registered: siteRows,
    publicRoot,
    upstreamBasePath: '/index.php/wp-json',
    source: { kind: 'upstream', refreshMs: 60_000, timeoutMs: 30_000, retryAfterMs: 0 },
    unlistedRoutes: 'learn',
    undeclaredParameters: 'forward',
    fetchIndex: async () => ({ status: 200, content: realIndex }),
    toPublic: names.fromUpstreamDocumentInPieces,
    rowsLearned: (_listed, rows) => learned.push(rows.map((row) => row.template)),
    tableChanged: () => {},
    report: (event) => events.push(event),
    ...changed,
  })
  return { discovery, events, learned }
}

export const parsed = (response: { readonly kind: string }): Record<string, unknown> => {
  if (response.kind !== 'document') throw new Error(`no document but ${response.kind}`)
  return JSON.parse((response as DiscoveryDocument).content.toString())
}
