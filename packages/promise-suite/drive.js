// @ts-check
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { randomFrom } from './random.js'

/**
 * @typedef {object} DriveOptions
 * @property {number} seed of what is read and written; when is up to the machine
 * @property {number} seconds
 * @property {number} reads go on until there are so many, for twenty times as long at most
 * @property {number} readers requests for reads at a time
 * @property {number} writers
 * @property {number} items
 * @property {number} writesPerSecond of all writers
 * @property {number} settle ms after the last write, before lost invalidations are looked for
 * @property {(line: string) => void} [history] called with each write, and with each item that a read shows:
 *   `read|write WHO ITEM VERSION FROM TO`, in ms; TO is `-` while the write is not acknowledged
 */

/**
 * @typedef {object} Result
 * @property {number} reads
 * @property {number} hits reads that did not reach the backend
 * @property {number} writes acknowledged
 * @property {number} stale reads older than a write that was acknowledged before they began
 * @property {number} longestStaleMs from the acknowledgement to the end of such a read
 * @property {number} lost URLs that are still older when writing has ended and `settle` has passed
 * @property {number} failed requests without a usable response
 * @property {number} medianWriteMs
 */

/** What the driver has written to an item. @typedef {{ version: number, list: string | undefined, at: number }} State */

/** @typedef {{ id: string, acknowledged: State[], started: number, busy: boolean, unknown: boolean }} Item */

/** @typedef {{ readonly id: string, readonly version: number }} Shown */

const requestTimeout = 10_000
const lists = ['a', 'b', 'c']

/** @param {Item} item */
const lastState = (item) => /** @type {State} */ (item.acknowledged.at(-1))

/**
 * @param {unknown} value
 * @returns {value is Shown}
 */
const isShown = (value) =>
  typeof value === 'object' &&
  value !== null &&
  'id' in value &&
  'version' in value &&
  typeof value.version === 'number'

/**
 * @param {unknown} content
 * @returns {readonly Shown[] | undefined}
 */
const shownItems = (content) => {
  if (isShown(content)) return [content]
  if (typeof content !== 'object' || content === null || !('items' in content)) return undefined
  return Array.isArray(content.items) && content.items.every(isShown) ? content.items : undefined
}

/** @param {readonly number[]} values */
const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0

/**
 * What a read may show, by what was acknowledged when it began. `list`: it lists all items of that list; otherwise it shows `items` only.
 * @param {readonly Item[]} items
 * @param {string | undefined} list
 */
const expectation = (items, list) => {
  const expected = items.map((item) => ({ item, state: lastState(item) }))
  /**
   * The acknowledged state that the answer does not show; undefined if it is current.
   * @param {readonly Shown[]} shown
   * @returns {State | undefined}
   */
  return (shown) => {
    const versions = new Map(shown.map(({ id, version }) => [id, version]))
    for (const { item, state } of expected) {
      if (item.unknown) continue
      const version = versions.get(item.id)
      if (version !== undefined && version < state.version)
        return item.acknowledged.find((later) => later.version > version)
      // Without another write meanwhile, the item is where it was put.
      const isThere = state.list !== undefined && (list === undefined || state.list === list)
      if (version === undefined && isThere && item.started === state.version) return state
    }
    return undefined
  }
}

/**
 * Reads and writes through the cache at `url` for some seconds.
 * @param {string} url
 * @param {DriveOptions} options
 * @returns {Promise<Result>}
 */
export const drive = async (url, options) => {
  const base = url.replace(/\/$/, '')
  // Earlier runs through the same cache cannot meet this one.
  const run = randomBytes(4).toString('hex')
  const end = performance.now() + options.seconds * 1000
  /** @type {readonly Item[]} */
  const items = Array.from({ length: options.items }, (_, at) => ({
    id: `${run}-${at}`,
    acknowledged: [{ version: 0, list: undefined, at: 0 }],
    started: 0,
    busy: false,
    unknown: false,
  }))
  const counts = { reads: 0, hits: 0, writes: 0, stale: 0, longestStaleMs: 0, lost: 0, failed: 0 }
  /** @type {number[]} */
  const writeMs = []
  const isOver = () => {
    const left = end - performance.now()
    return left <= 0 && (counts.reads >= options.reads || left < -20_000 * options.seconds)
  }

  /**
   * @param {string} path
   * @param {RequestInit} [init]
   */
  const send = async (path, init = {}) => {
    const response = await fetch(base + path, { ...init, signal: AbortSignal.timeout(requestTimeout) })
    const text = await response.text()
    return { status: response.status, content: /** @type {unknown} */ (text === '' ? {} : JSON.parse(text)) }
  }
  const backendReads = async () => {
    const { content } = await send(`/reads?at=${randomBytes(8).toString('hex')}`)
    if (typeof content !== 'object' || content === null || !('reads' in content))
      throw new Error(`${base}/reads does not give the number of reads`)
    return Number(content.reads)
  }

  /**
   * @param {'read' | 'write'} kind
   * @param {string} who
   * @param {Shown} shown
   * @param {number} from
   * @param {number | '-'} to
   */
  const note = (kind, who, { id, version }, from, to) =>
    options.history?.(`${kind} ${who} ${id} ${version} ${from} ${to}`)

  /**
   * Is the response older than it may be?
   * @param {string} path
   * @param {ReturnType<typeof expectation>} missing
   */
  const read = async (path, missing) => {
    const began = performance.now()
    try {
      const { status, content } = await send(path)
      const shown = status === 404 ? [] : status === 200 ? shownItems(content) : undefined
      if (shown === undefined) {
        counts.failed += 1
        return false
      }
      counts.reads += 1
      for (const item of shown) note('read', path, item, began, performance.now())
      const hidden = missing(shown)
      if (hidden === undefined) return false
      counts.stale += 1
      counts.longestStaleMs = Math.max(counts.longestStaleMs, performance.now() - hidden.at)
      return true
    } catch {
      counts.failed += 1
      return false
    }
  }
  /** @param {Item} item */
  const readItem = (item) => read(`/items/${item.id}`, expectation([item], undefined))
  /** @param {string} list */
  const readList = (list) => read(`/lists/${run}-${list}`, expectation(items, list))

  /**
   * @param {Item} item
   * @param {string | undefined} list without it, the item is deleted
   */
  const write = async (item, list) => {
    item.busy = true
    item.started += 1
    const version = item.started
    const began = performance.now()
    const path = `/items/${item.id}`
    note('write', path, { id: item.id, version }, began, '-')
    try {
      const { status } = await send(
        path,
        list === undefined
          ? { method: 'DELETE' }
          : {
              method: 'PUT',
              headers: { 'Content-Type': 'application/json' },
              body: JSON.stringify({ version, list: `${run}-${list}` }),
            },
      )
      if (status !== 200) throw new Error(`${status}`)
      const at = performance.now()
      note('write', path, { id: item.id, version }, began, at)
      item.acknowledged.push({ version, list, at })
      counts.writes += 1
      writeMs.push(performance.now() - began)
    } catch {
      // It may be carried out at any time from now on: the item is not compared any more.
      item.unknown = true
      counts.failed += 1
    }
    item.busy = item.unknown
  }

  /** Reads favour a few items (the square of a random number), so that a cache is of use. @param {number} number */
  const reader = async (number) => {
    const random = randomFrom(options.seed * 1000 + number)
    while (!isOver()) {
      const [what, which] = [random(), random()]
      const item = items[Math.floor(which * which * items.length)]
      if (what < 0.3 || item === undefined) await readList(lists[Math.floor(which * lists.length)] ?? 'a')
      else await readItem(item)
    }
  }
  /**
   * Where a write leaves an item: half of the writes do not move it, a tenth deletes it.
   * @param {Item} item
   * @param {() => number} random
   */
  const nextList = (item, random) => {
    const { list } = lastState(item)
    const [what, other] = [random(), lists[Math.floor(random() * lists.length)]]
    if (list !== undefined && what < 0.1) return undefined
    return list === undefined || what < 0.5 ? other : list
  }
  /** @param {number} number */
  const writer = async (number) => {
    const random = randomFrom(options.seed * 1000 + 500 + number)
    while (!isOver()) {
      const free = items.filter(({ busy }) => !busy)
      const item = free[Math.floor(random() ** 2 * free.length)]
      if (item !== undefined) await write(item, nextList(item, random))
      await sleep((random() * 2000 * options.writers) / options.writesPerSecond)
    }
  }

  await Promise.all(items.map((item, at) => write(item, lists[at % lists.length])))
  if (counts.writes === 0) throw new Error(`${base} acknowledges no write`)
  const before = await backendReads()
  await Promise.all([
    ...Array.from({ length: options.readers }, (_, at) => reader(at)),
    ...Array.from({ length: options.writers }, (_, at) => writer(at)),
  ])
  counts.hits = Math.max(0, counts.reads - ((await backendReads()) - before))
  await sleep(options.settle)
  const { reads, stale, longestStaleMs } = counts
  for (const item of items) if (await readItem(item)) counts.lost += 1
  for (const list of lists) if (await readList(list)) counts.lost += 1
  return { ...counts, reads, stale, longestStaleMs, medianWriteMs: median(writeMs) }
}

/**
 * How many nines a run without a stale read shows, with 95 % confidence: fewer than 3 in that number are stale (the rule of three). Only
 * hits can be stale, so only they count.
 * @param {Pick<Result, 'hits' | 'stale' | 'lost'>} result
 */
export const nines = ({ hits, stale, lost }) =>
  stale + lost > 0 || hits < 30 ? 0 : Math.floor(Math.log10(hits / 3))
