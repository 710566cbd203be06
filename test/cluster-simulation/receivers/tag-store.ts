import { headerValue } from '../../../src/http/headers/header-lines.ts'
import type { GatewayResponse } from '../../../src/http/message.ts'
import { network } from '../redis/network.ts'
import type { PurgeRequest } from '../replaced/undici.ts'
import { world } from '../world.ts'
import { type FrontKind, type Receiver, settleMs } from './front.ts'

/** What it has received of a response; `content` comes later than the head. */
type FrontEntry = {
  readonly tags: ReadonlySet<string>
  readonly freshUntil: number
  content: string | undefined
}

type TagKind = Exclude<FrontKind, 'next'>

type Dialect = {
  readonly header: string
  readonly separator: string
  /** The tags that a purge names. */
  readonly purged: (request: PurgeRequest) => readonly string[]
}

type Body = { readonly tags?: readonly string[]; readonly surrogate_keys?: readonly string[] }

const bodyOf = ({ body }: PurgeRequest): Body => JSON.parse(body ?? '{}') as Body

/** As their interfaces say it (src/downstream/purge-requests.ts). */
const dialects: Readonly<Record<TagKind, Dialect>> = {
  varnish: {
    ...{ header: 'xkey', separator: ' ' },
    purged: ({ headers }) => (headers['xkey-purge'] ?? '').split(' '),
  },
  fastly: {
    ...{ header: 'surrogate-key', separator: ' ' },
    purged: (request) => bodyOf(request).surrogate_keys ?? [],
  },
  cloudflare: {
    ...{ header: 'cache-tag', separator: ',' },
    purged: (request) => bodyOf(request).tags ?? [],
  },
  webhook: {
    ...{ header: 'surrogate-key', separator: ' ' },
    purged: (request) => bodyOf(request).tags ?? [],
  },
}

const lifetimeMs = ({ headers }: GatewayResponse): number => {
  const seconds = /^max-age=(\d+)$/.exec(headerValue(headers, 'surrogate-control') ?? '')?.[1] ?? '0'
  return (Number(seconds) - Number(headerValue(headers, 'age') ?? 0)) * 1000
}

/**
 * A cache that stores what the headers allow, and drops what a purge names. What is on its way when it is purged is stored when it
 * arrives.
 */
export const createTagStore = (kind: TagKind): Receiver => {
  const random = world.randomFor('arrivals at the front')
  const { header, separator, purged } = dialects[kind]
  const entries = new Map<string, FrontEntry>()
  let starts = 0

  const receive = (target: string, response: GatewayResponse): FrontEntry => {
    const tags = (headerValue(response.headers, header) ?? '').split(separator).filter((tag) => tag !== '')
    const freshUntil = world.now + lifetimeMs(response)
    const entry: FrontEntry = { tags: new Set(tags), freshUntil, content: undefined }
    const delayMs = random() < 0.3 ? random() * settleMs : network.delay(random)
    const arrivesAt = world.now + Math.min(delayMs, settleMs * 0.9)
    const from = starts
    world.schedule(arrivesAt, undefined, 'a response arrives at the front', () => {
      if (response.status === 200 && entry.freshUntil > world.now && from === starts)
        entries.set(target, entry)
    })
    return entry
  }

  return {
    look: (target, then) => {
      const entry = entries.get(target)
      then({
        stored: entry === undefined || world.now >= entry.freshUntil ? undefined : entry.content,
        receive: (response) => {
          const received = receive(target, response)
          return {
            whole: (content) => {
              received.content = content
            },
          }
        },
      })
    },
    purge: (request, confirm) => {
      const named = purged(request)
      if (world.isTraced) world.note(`front: purged of ${named.join(' ')}`)
      for (const [target, { tags }] of entries) if (named.some((tag) => tags.has(tag))) entries.delete(target)
      confirm(200, {})
    },
    restart: () => {
      starts += 1
      entries.clear()
    },
  }
}
