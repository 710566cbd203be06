import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'

/** After it a run counts as ended, whatever it does. */
const maxRunMs = 30_000
/** For a reader who has gone away, nothing tells of a failure. */
const maxAbandonedMs = 1_000
const pollMs = 5
/** A page that calls a function with `'use cache'` that calls another. */
const maxDepth = 3

/**
 * @typedef {import('node:http').ServerResponse} ServerResponse
 * @typedef {'page' | 'function' | 'revalidation'} Kind
 * @typedef {{ kind: Kind, response: ServerResponse, deadline: number, end: 'none' | 'result' | 'unknown' }} Run
 */

/**
 * A page whose response has begun is joined no longer; a function may run until the response has ended; a revalidation outlives it.
 * @param {Run} run
 */
const isUnderWay = ({ kind, response, deadline, end }) => {
  if (end !== 'none' || performance.now() > deadline) return false
  if (kind === 'page') return !response.headersSent
  return kind === 'revalidation' || !response.writableEnded
}

/**
 * It gets a page that is past its time, and has it made again by the next reader.
 * @param {ServerResponse} response
 */
const isOfPrefetch = ({ req: { headers } }) =>
  headers['purpose'] === 'prefetch' || headers['next-router-prefetch'] !== undefined

/**
 * What is being made for the requests of this process: pages, functions with `'use cache'`, and pages past their time that are shown while
 * they are made again. Next.js lets a reader join it without asking a handler: so a purge is confirmed only when what began before it has
 * ended. That is when a handler gets the result, or, since what fails has none, by the response that it was made for.
 */
class UnderWay {
  #responses = new AsyncLocalStorage()
  /** Of pages and functions. @type {Map<ServerResponse, Map<string, Run>>} */
  #runs = new Map()
  /** @type {Map<string, Run>} */
  #revalidations = new Map()

  constructor() {
    subscribe('http.server.request.start', (message) => {
      this.#responses.enterWith(/** @type {{ response: ServerResponse }} */ (message).response)
    })
  }

  /**
   * @param {string} key
   * @param {Kind} kind
   */
  begin(key, kind) {
    /** @type {ServerResponse | undefined} */
    const response = this.#responses.getStore()
    // A function that another one calls: it ends before its caller.
    if (response === undefined || response.destroyed) return
    if (kind === 'revalidation' && isOfPrefetch(response)) return
    const runs = kind === 'revalidation' ? this.#revalidations : this.#runsOf(response)
    const known = runs.get(key)
    if (known === undefined || !isUnderWay(known))
      runs.set(key, { kind, response, deadline: performance.now() + maxRunMs, end: 'none' })
  }

  /** @param {string} key */
  end(key) {
    for (const runs of [this.#revalidations, this.#runs.get(this.#responses.getStore())]) {
      const run = runs?.get(key)
      if (run !== undefined) run.end = 'result'
      runs?.delete(key)
    }
  }

  /**
   * Purges, and resolves when no reader can join what began before. What began meanwhile may have joined a function that began before: then
   * it is purged too, and waited for.
   * @param {() => void} purge
   * @param {AbortSignal} signal
   */
  async purged(purge, signal) {
    for (let depth = 0; depth < maxDepth; depth += 1) {
      purge()
      const runs = [this.#revalidations, ...this.#runs.values()]
        .flatMap((some) => [...some.values()])
        .filter(isUnderWay)
      while (runs.some(isUnderWay) && !signal.aborted) await sleep(pollMs)
      if (signal.aborted || !runs.some(({ kind, end }) => kind === 'function' && end === 'result')) return
    }
  }

  /** @param {ServerResponse} response */
  #runsOf(response) {
    const known = this.#runs.get(response)
    if (known !== undefined) return known
    /** @type {Map<string, Run>} */
    const runs = new Map()
    this.#runs.set(response, runs)
    const forget = () => {
      for (const run of runs.values()) run.end = 'unknown'
      this.#runs.delete(response)
    }
    response.once('close', () => {
      if (response.writableFinished) forget()
      else setTimeout(forget, maxAbandonedMs).unref()
    })
    return runs
  }
}

const name = Symbol.for('trellis.next.under-way')

globalThis[name] ??= new UnderWay()

/** @type {UnderWay} */
export const underWay = globalThis[name]
