import { isDeepStrictEqual } from 'node:util'
import type { TestGateway } from '../../support/gateway.ts'
import { forAll } from '../for-all.ts'
import { inWordPressNames } from '../in-wordpress-names.ts'
import { readMany } from '../read-many.ts'
import type { SiteUnderTest } from '../site-under-test.ts'
import { type Push, sign } from './intake.ts'
import type { CompanionSite } from './site.ts'
import type { Write } from './writes.ts'

type Reply = {
  readonly isHit: boolean
  /** Another read may find it stored: the gateway stores no error, and its own documents have no Cache-Status. */
  readonly isStorable: boolean
  readonly shown: unknown
  readonly tags: string
}

/** What one write left of the stored responses. */
export type Kept = {
  readonly title: string
  /** Responses that the write did not change and that were stored before it. */
  readonly unchanged: number
  readonly kept: number
  readonly needless: readonly string[]
  /** Kept although they changed. */
  readonly stale: readonly string[]
}

/** Sends what was pushed once more and waits: a push is given up after 300 ms, which a busy machine may need for nothing. */
export const confirmPushes = async (gateway: TestGateway, pushes: readonly Push[]): Promise<void> => {
  for (const push of pushes) {
    const body = JSON.stringify(push)
    const response = await fetch(`${gateway.adminAddress}/changes`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Trellis-Signature': sign('POST', '/changes', body) },
      body,
    })
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  }
}

/** Compares what a gateway has stored with what WordPress says, write by write. */
export const createKeeper = (site: CompanionSite, gateway: TestGateway, paths: readonly string[]) => {
  const root = '/index.php/wp-json'
  const names: SiteUnderTest = {
    title: 'gateway',
    restRoot: gateway.publicAddress + root,
    names: 'wordpress',
    namespace: 'wp/v2',
    throughGateway: true,
    admin: { username: '', password: '' },
  }

  const shownOf = (status: number, counts: readonly (string | null)[], text: string): unknown => {
    let body: unknown = text
    try {
      body = inWordPressNames(JSON.parse(text), names, site.origin + root)
    } catch {
      // Shown as it is.
    }
    return { status, counts, body }
  }

  const read = async (origin: string, path: string): Promise<Reply> => {
    const response = await fetch(origin + root + path)
    const text = await response.text()
    const counts = ['x-wp-total', 'x-wp-totalpages'].map((name) => response.headers.get(name))
    const cacheStatus = response.headers.get('cache-status') ?? ''
    const isHit = cacheStatus.startsWith('trellis; hit')
    const isStorable = cacheStatus !== '' && response.ok
    const tags = response.headers.get('trellis-tags') ?? ''
    return { isHit, isStorable, tags, shown: shownOf(response.status, counts, text) }
  }

  /** What WordPress itself says: many responses in one request, and those that differ by their own request. */
  const directly = async (stored: ReadonlyMap<string, unknown>): Promise<readonly unknown[]> => {
    const asked = [...stored.keys()].map((route) => ({ route, user: 0 }))
    const responses = await readMany(site.origin, asked)
    return forAll([...stored], async ([path, shown]) => {
      const response = responses[[...stored.keys()].indexOf(path)]
      if (response !== undefined) {
        const said = shownOf(response.status, [response.total, response.pages], response.body)
        if (isDeepStrictEqual(said, shown)) return said
      }
      return (await read(site.origin, path)).shown
    })
  }

  /** Reads until everything is stored that can be; while a request writes nothing is. */
  const store = async (): Promise<ReadonlyMap<string, unknown>> => {
    const stored = new Map<string, unknown>()
    let missing = paths
    for (let tries = 0; tries < 20 && missing.length > 0; tries += 1) {
      if (tries > 1) await new Promise((resolve) => setTimeout(resolve, 200))
      const responses = await forAll(missing, async (path) => ({
        path,
        ...(await read(gateway.publicAddress, path)),
      }))
      for (const { path, isHit, shown } of responses) if (isHit) stored.set(path, shown)
      missing = responses.filter(({ isHit, isStorable }) => isStorable && !isHit).map(({ path }) => path)
    }
    return stored
  }

  return {
    store,
    direct: (path: string) => read(site.origin, path),
    after: async ([title, , run]: Write): Promise<Kept> => {
      const before = await store()
      const count = site.intake.pushes.length
      await run(site)
      await confirmPushes(gateway, site.intake.pushes.slice(count))
      const kept = await forAll([...before.keys()], (path) => read(gateway.publicAddress, path))
      const direct = await directly(before)
      const seen = [...before].map(([path, shown], at) => ({
        path,
        isKept: kept[at]?.isHit === true,
        isSame: isDeepStrictEqual(direct[at], shown),
        isStale: kept[at]?.isHit === true && !isDeepStrictEqual(direct[at], kept[at]?.shown),
      }))
      const same = seen.filter(({ isSame }) => isSame)
      const needless = same.filter(({ isKept }) => !isKept).map(({ path }) => path)
      const stale = seen.filter(({ isStale }) => isStale).map(({ path }) => path)
      return { title, unchanged: same.length, kept: same.length - needless.length, needless, stale }
    },
  }
}
