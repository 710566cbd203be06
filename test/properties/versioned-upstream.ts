import type { IncomingMessage, ServerResponse } from 'node:http'
import { startHttpServer } from '../support/http-server.ts'
import { pause } from '../support/origin.ts'

/** The outcome of a write, which the writer chooses by a field. */
export const writeFates = ['answered', 'failed', 'refused', 'lost', 'dropped', 'late'] as const
export type WriteFate = (typeof writeFates)[number]

const carriedOut: ReadonlySet<WriteFate> = new Set(['answered', 'failed', 'lost', 'late'])
const brokenOff: ReadonlySet<WriteFate> = new Set(['lost', 'dropped'])
const refusals: Readonly<Partial<Record<WriteFate, number>>> = { failed: 500, refused: 400 }

/** So long the gateway of the test waits for a head; a late write takes up to twice as long. */
export const timeoutMs = 800

export const postIds = [1, 2, 3, 4, 5] as const

/** A site of five posts, each a version number, with a delay at every step; responses are public. */
export type VersionedUpstream = {
  readonly origin: string
  versionOf(id: number): number
  /** What the write of that name made of its post; undefined while it is not carried out. */
  madeBy(name: string): number | undefined
  /** A change that does not pass through the gateway; returns the version. */
  change(id: number): number
  /** Called with each new version of a post. */
  onChange: (id: number, version: number) => void
  /** Called when a write was carried out although its time at the gateway may be over. */
  onLate: (id: number, version: number) => void
  close(): void
}

/** Most turns take no time, some take a while, so that everything overtakes everything. */
const sometime = (): Promise<void> => (Math.random() < 0.3 ? Promise.resolve() : pause(Math.random() * 4))

export const startVersionedUpstream = async (): Promise<VersionedUpstream> => {
  const versions = new Map<number, number>()
  const made = new Map<string, number>()
  const versionOf = (id: number): number => versions.get(id) ?? 0
  const change = (id: number): number => {
    versions.set(id, versionOf(id) + 1)
    upstream.onChange(id, versionOf(id))
    return versionOf(id)
  }

  const itemOf = (id: number, caller: string) => ({
    id,
    type: 'post',
    author: 1,
    categories: [1],
    tags: [],
    version: versionOf(id),
    caller,
  })

  /** What the upstream would answer now: an item, the list of all, or a page that renders the list. */
  const stateOf = (path: string, caller: string): unknown => {
    const id = /\/posts\/(\d+)$/.exec(path)?.[1]
    if (id !== undefined) return itemOf(Number(id), caller)
    const all = postIds.map((one) => itemOf(one, caller))
    if (path.endsWith('/posts')) return all
    return { id: 9, type: 'page', content: { rendered: '<ul class="wp-block-latest-posts">' }, all, caller }
  }

  /** Carries a write out, or not; false when the response is done with. */
  const meet = async (received: IncomingMessage, id: number, response: ServerResponse): Promise<boolean> => {
    const fate = received.headers['x-fate'] as WriteFate
    if (fate === 'late') await pause(Math.random() * timeoutMs * 2)
    if (carriedOut.has(fate)) {
      const version = change(id)
      made.set(String(received.headers['x-write']), version)
      if (fate === 'late') upstream.onLate(id, version)
    }
    const status = refusals[fate]
    if (status !== undefined) response.writeHead(status).end('{}')
    else if (brokenOff.has(fate)) response.destroy()
    return fate === 'answered'
  }

  const reply = async (received: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (received.url ?? '').split('?', 1)[0] ?? ''
    received.resume()
    await sometime()
    if (received.method === 'PUT') {
      if (!(await meet(received, Number(/\/(\d+)$/.exec(path)?.[1]), response))) return
    }
    const content = JSON.stringify(stateOf(path, received.headers.authorization ?? 'nobody'))
    await sometime()
    response.writeHead(200, { 'Content-Type': 'application/json', 'X-WP-Total': '5', 'X-WP-TotalPages': '1' })
    response.flushHeaders()
    if (Math.random() < 0.2) await sometime()
    response.end(content)
  }

  const { origin, close } = await startHttpServer((received, response) => void reply(received, response))
  const upstream: VersionedUpstream = {
    origin,
    versionOf,
    madeBy: (name) => made.get(name),
    change,
    onChange: () => {},
    onLate: () => {},
    close,
  }
  return upstream
}
