import { createHmac, timingSafeEqual } from 'node:crypto'
import * as cache from 'next/cache'
import { notKept, purges } from './purges.js'
import { underWay } from './under-way.js'

/**
 * On everything that was made of responses of Trellis, and on `fetch` whose tags are not known before it: goes with every purge.
 */
export const anyChange = 'trellis-any'
/** On everything that was made of responses of Trellis: goes with a purge of everything. */
export const everything = 'trellis'

const maxBodyBytes = 262_144

/**
 * @param {string} body
 * @param {string} given
 * @param {string} secret
 */
const isSigned = (body, given, secret) => {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
  const signature = Buffer.from(given)
  return signature.length === expected.length && timingSafeEqual(signature, expected)
}

/** @param {unknown} value */
const isText = (value) => typeof value === 'string'

/**
 * The body of a purge; undefined when it is none.
 * @param {string} body
 */
const purgeIn = (body) => {
  try {
    const { tags, all } = JSON.parse(body)
    return Array.isArray(tags) && tags.every(isText) ? { tags, all: all === true } : undefined
  } catch {
    return undefined
  }
}

/**
 * Drops what a purge names, and what carries one of the tags of this package.
 * @param {{ tags: readonly string[], all: boolean }} purge
 */
const carryOut = ({ tags, all }) => {
  const reached = [...tags, ...(tags.length > 0 ? [anyChange] : []), ...(all ? [everything] : [])]
  purges.purge(reached)
  if (all) purges.purgeAll()
  // Next.js 15 takes no second argument, and expires at once without it.
  for (const tag of reached) cache.revalidateTag(tag, { expire: 0 })
}

/**
 * The route handler that Trellis sends purges to. It confirms a purge when no reader can get what began before it. With the id of this
 * process in its response, Trellis notices a restart.
 * @param {{ secret: string | undefined }} options
 */
export const createPurgeRoute =
  ({ secret }) =>
  /** @param {Request} request */
  async (request) => {
    // Not before: a build has no secrets.
    if (!secret) throw new Error('@trellis/next: createPurgeRoute has no secret')
    const body = await request.text()
    if (body.length > maxBodyBytes) return new Response(null, { status: 413 })
    if (!isSigned(body, request.headers.get('trellis-signature') ?? '', secret))
      return new Response(null, { status: 403 })
    const purge = purgeIn(body)
    if (purge === undefined) return new Response(null, { status: 400 })
    // Without tags it asks for the id of this process.
    if (purge.tags.length > 0 || purge.all) await underWay.purged(() => carryOut(purge), request.signal)
    // Nobody hears it: Trellis has waited for the `timeout` of the receiver, and sends the purge again.
    if (request.signal.aborted) return new Response(null, { status: 503 })
    return new Response(null, { status: 204, headers: { 'Trellis-Receiver': purges.process } })
  }

const isBuild = () => process.env['NEXT_PHASE'] === 'phase-production-build'
const cacheTag = cache.cacheTag ?? cache.unstable_cacheTag
const cacheLife = cache.cacheLife ?? cache.unstable_cacheLife

/**
 * In a function with `'use cache'`: what it returns is kept until a write changes this response. A response without tags, as those are
 * while Trellis waits for a confirmation, is not kept, except by a build: its pages are replaced when the process that serves them starts.
 * @param {Response} response
 */
export const keepUntilPurged = (response) => {
  const tags = (response.headers.get('surrogate-key') ?? '').split(' ').filter((tag) => tag !== '')
  cacheTag(everything, ...tags)
  if (tags.length > 0 || isBuild()) return
  if (purges.hasUseCacheHandler) cacheTag(notKept)
  // Next.js takes what has no lifetime for dynamic: a page of the build that shows it outside of <Suspense> fails.
  else cacheLife({ stale: 0, revalidate: 0, expire: 0 })
}
