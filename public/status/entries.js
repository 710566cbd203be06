// Lists: recent errors, refusals and invalidations, and stored responses.

import { read } from './ask.js'
import { drawTable, element } from './draw.js'
import { age, counted, decimals, size } from './numbers.js'

/** @typedef {import('../../src/observability/history.ts').RecentEvents} Recent */
/** @typedef {{ service: string, url: string, partition: string, status: number, bytes: number, hits: number, ageSeconds: number, ttlSeconds: number, tags: readonly string[] }} Entry */

const everyMs = 3_000
const rowsShown = 10
const tagsShown = 3
const entriesOfPage = 25
const mostEntries = 1_000

/** @param {string} at */
const clockTime = (at) => new Date(at).toLocaleTimeString('en-GB')

/** @param {'errors' | 'refusals'} list @param {Recent} recent @param {string} none */
const drawErrors = (list, recent, none) => {
  const rows = recent[list]
    .slice(0, rowsShown)
    .map(({ at, id, service, route, status, code }) => [
      clockTime(at),
      { text: String(status), mood: status >= 500 ? /** @type {const} */ ('bad') : undefined },
      code === '' ? 'from the upstream' : code,
      service === 'none' ? 'no service' : `${service} ${route}`,
      { text: id, kind: /** @type {const} */ ('id') },
    ])
  drawTable(element(list), ['Time', 'Status', 'Code', 'Route', 'Request id'], rows, none)
}

/** The first texts, each on its line, and how many there are beside them. @param {readonly string[]} texts @param {number} all */
const listed = (texts, all) =>
  texts.length === 0 || all <= texts.length
    ? texts.join('\n')
    : `${texts.join('\n')}\nand ${decimals(all - texts.length)} more`

/** @param {Recent} recent */
const drawInvalidations = ({ invalidations }) => {
  const rows = invalidations
    .slice(0, rowsShown)
    .map(({ at, cause, service, id, reach, tags, entries, urls }) => [
      clockTime(at),
      [cause, service].filter((text) => text !== '').join(', '),
      decimals(entries),
      { text: listed(urls, entries), kind: /** @type {const} */ ('code') },
      { text: listed(reach.slice(0, tagsShown), tags), kind: /** @type {const} */ ('code') },
      { text: id === '' ? 'admin side' : id, kind: /** @type {const} */ ('id') },
    ])
  drawTable(
    element('invalidations'),
    ['Time', 'Write or purge', '#Responses dropped', 'Their URLs', 'What it reached', 'Request id'],
    rows,
    'No write and no purge yet.',
  )
}

const whyNothing = {
  reported: 'The companion has reported what it changed.',
  nothing: 'The companion says that it wrote nothing.',
  table: 'WordPress writes nothing here.',
  harmless: 'It is named in cache.harmlessWrites.',
}

/** @param {Recent} recent */
const drawKept = ({ kept }) => {
  const rows = kept
    .slice(0, rowsShown)
    .map(({ at, cause, service, taken, id }) => [
      clockTime(at),
      `${cause}, ${service}`,
      whyNothing[taken],
      { text: id, kind: /** @type {const} */ ('id') },
    ])
  drawTable(
    element('kept'),
    ['Time', 'Request', 'Why it dropped nothing', 'Request id'],
    rows,
    'No such write yet.',
  )
}

/** @type {Recent['upstreams']} */
let changes = []

/** The last change of each target and breaker. */
export const upstreamChanges = () => changes

const refreshRecent = async () => {
  const { ok, content } = await read('recent')
  if (!ok) return
  changes = content.upstreams
  drawErrors('errors', content, 'No error yet.')
  drawErrors('refusals', content, 'No refused request yet.')
  drawInvalidations(content)
  drawKept(content)
}

/** @type {readonly Entry[]} */
let entries = []
let page = 0

/** @param {string} id */
const button = (id) => /** @type {HTMLButtonElement} */ (element(id))

const drawEntries = () => {
  const filter = /** @type {HTMLInputElement} */ (element('entries-filter')).value.toLowerCase()
  const found = entries.filter(({ service, url, tags }) =>
    [service, url, ...tags].some((text) => text.toLowerCase().includes(filter)),
  )
  const pages = Math.max(1, Math.ceil(found.length / entriesOfPage))
  page = Math.min(page, pages - 1)
  const shown = found.slice(page * entriesOfPage, (page + 1) * entriesOfPage)
  const rows = shown.map(({ service, url, partition, status, bytes, hits, ageSeconds, ttlSeconds, tags }) => [
    {
      text: url,
      kind: /** @type {const} */ ('code'),
      href: `#tools?${new URLSearchParams({ url })}`,
    },
    partition === 'public' ? service : `${service}, one credential`,
    { text: String(status), mood: status >= 400 ? /** @type {const} */ ('warn') : undefined },
    size(bytes),
    decimals(hits),
    age(ageSeconds),
    ttlSeconds < 0 ? { text: 'stale', mood: /** @type {const} */ ('warn') } : age(ttlSeconds),
    decimals(tags.length),
  ])
  drawTable(
    element('entries'),
    ['URL', 'Service', '#Status', '#Size', '#Hits', '#Age', '#Fresh for', '#Tags'],
    rows,
    entries.length === 0 ? 'Nothing is stored.' : 'Nothing matches the filter.',
  )
  const total =
    entries.length === mostEntries ? `the first ${decimals(mostEntries)}` : decimals(entries.length)
  element('entries-count').textContent =
    `${counted(found.length, 'stored response')} of ${total}, page ${page + 1} of ${pages}`
  element('entries-pages').hidden = false
  button('entries-back').disabled = page === 0
  button('entries-next').disabled = page === pages - 1
}

const loadEntries = async () => {
  const { value } = /** @type {HTMLSelectElement} */ (element('entries-sort'))
  const { ok, content } = await read(`cache/entries?sort=${value}&limit=${mostEntries}`)
  if (!ok) return
  entries = content.entries
  drawEntries()
}

/** @param {number} step */
const turn = (step) => () => {
  page = Math.max(0, page + step)
  drawEntries()
}

/** Draws the lists; stored responses when the button is pressed. */
export const showLists = () => {
  const load = () => {
    page = 0
    loadEntries().catch(() => {
      element('entries-count').textContent = 'The gateway did not respond.'
    })
  }
  element('entries-form').addEventListener('submit', (event) => {
    event.preventDefault()
    load()
  })
  element('entries-sort').addEventListener('change', load)
  element('entries-filter').addEventListener('input', () => {
    page = 0
    if (entries.length > 0) drawEntries()
  })
  element('entries-back').addEventListener('click', turn(-1))
  element('entries-next').addEventListener('click', turn(1))
  const poll = async () => {
    if (!document.hidden) await refreshRecent().catch(() => undefined)
    setTimeout(poll, everyMs)
  }
  return poll()
}
