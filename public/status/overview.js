// The numbers of the overview, and the busiest routes.

import { drawTable, drawTiles, element, make } from './draw.js'
import {
  counted,
  countOf,
  decimals,
  duration,
  durationFrom,
  lately,
  percent,
  quantileText,
  rate,
  rateText,
  size,
  withinText,
} from './numbers.js'

/** @typedef {import('../../src/admin/status-report.ts').StatusReport} Report */
/** @typedef {{ at: number, report: Report }} Seen */
/** @typedef {import('./charts.js').History} History */

const fromCache = ['hit', 'revalidated', 'collapsed', 'stale']
/** Differences of two reports are shown once they cover this time; until then the history knows better. */
const shortestMs = 10_000

/** @typedef {{ period: string, perSecond: number, asked: number, hits: number, failed: number, p50: string, p99: string }} Numbers */

/** @param {Report} is @param {Report | undefined} was @param {number} seconds @param {string} period @returns {Numbers} */
const between = (is, was, seconds, period) => {
  const change = (/** @type {(report: Report) => number} */ of) => of(is) - (was === undefined ? 0 : of(was))
  const before = was?.durations.buckets ?? []
  return {
    period,
    perSecond: rate(is.requests.total, was?.requests.total ?? 0, seconds),
    asked: change(({ requests }) => requests.total),
    hits: change(({ requests }) => countOf(requests.byCache, 'cache', fromCache)),
    failed: change(({ requests }) => countOf(requests.byStatus, 'status_class', ['5xx'])),
    p50: quantileText(is.durations.buckets, before, 0.5),
    p99: quantileText(is.durations.buckets, before, 0.99),
  }
}

/** @param {History | undefined} history @param {number} columns @param {string} period @returns {Numbers | undefined} */
const ofHistory = (history, columns, period) => {
  if (history === undefined) return undefined
  const { asked, hits, failed, seconds, p50, p99 } = lately(history, columns)
  return asked === 0
    ? undefined
    : {
        period,
        perSecond: asked / seconds,
        asked,
        hits,
        failed,
        p50: durationFrom(history.finest, p50),
        p99: durationFrom(history.finest, p99),
      }
}

/**
 * The numbers of the last half minute. When nothing came in it, those of the last hour: a site with a request a minute has a hit
 * ratio too.
 * @param {Seen} now
 * @param {Seen} before
 * @param {History | undefined} history
 */
const numbersOf = (now, before, history) => {
  const half = 'the last 30 seconds'
  const ownMs = now.at - before.at
  const own =
    ownMs < shortestMs ? ofHistory(history, 3, half) : between(now.report, before.report, ownMs / 1000, half)
  if (own !== undefined && own.asked > 0) return own
  const up = Math.max(1, Date.now() / 1000 - now.report.startedAt)
  const sinceStart = 'the time since the start'
  return (
    ofHistory(history, 360, up < 3600 ? sinceStart : 'the last hour') ??
    between(now.report, undefined, up, sinceStart)
  )
}

/** @typedef {import('./draw.js').Tile} Tile */

/** @param {number} days @returns {Tile['mood']} */
const moodOf = (days) => {
  if (days >= 14) return undefined
  return days < 3 ? 'bad' : 'warn'
}

/** @param {Report} report @returns {readonly Tile[]} */
const certificateTiles = ({ certificateExpiresAt }) => {
  if (certificateExpiresAt === null) return []
  const days = Math.floor((certificateExpiresAt - Date.now() / 1000) / 86_400)
  const date = new Date(certificateExpiresAt * 1000).toLocaleDateString('en-GB', { dateStyle: 'long' })
  return [
    days < 0
      ? { name: 'Certificate', value: 'expired', note: `on ${date}`, mood: 'bad' }
      : {
          name: 'Certificate',
          value: counted(days, 'day'),
          note: `the first one expires on ${date}`,
          mood: moodOf(days),
        },
  ]
}

/** @param {Report} is @returns {readonly Tile[]} */
const stateTiles = (is) => {
  const fill = is.cache.maxBytes > 0 ? is.cache.bytes / is.cache.maxBytes : 0
  return [
    {
      name: 'In flight',
      value: decimals(is.requests.inFlight),
      note: counted(is.requests.connections, 'connection'),
    },
    {
      name: 'Cache',
      value: size(is.cache.bytes),
      note: `${percent(fill, 1)} of ${size(is.cache.maxBytes)}, ${counted(is.cache.entries, 'stored response')}, ${decimals(is.cache.evictions)} evicted`,
      ...(is.memoryTrusted ? {} : { mood: 'warn' }),
    },
    ...(is.openWrites.length === 0
      ? []
      : [
          {
            name: 'Open writes',
            value: decimals(is.openWrites.reduce((sum, { count }) => sum + count, 0)),
            note: `what they may change is not stored: ${is.openWrites.map(({ service }) => service).join(', ')}`,
            mood: /** @type {const} */ ('warn'),
          },
        ]),
    ...(is.verified.checked === 0
      ? []
      : [
          {
            name: 'Stored responses verified',
            value: counted(is.verified.nines, 'nine'),
            note: `${decimals(is.verified.checked)} compared with the upstream, ${decimals(is.verified.differed)} differed`,
            ...(is.verified.differed > 0 ? { mood: /** @type {const} */ ('bad') } : {}),
          },
        ]),
    ...certificateTiles(is),
    { name: 'Memory', value: size(is.process.residentBytes), note: `heap ${size(is.process.heapBytes)}` },
    {
      name: 'Event loop delay',
      value: duration(is.process.loopDelaySeconds),
      note: '99 % of the time; 10 ms when idle',
      ...(is.process.loopDelaySeconds > 0.1 ? { mood: 'warn' } : {}),
    },
  ]
}

/** @param {Seen} now @param {Seen} before @param {History | undefined} history */
export const drawNumbers = (now, before, history) => {
  const is = now.report
  const { period, perSecond, asked, hits, failed, p50, p99 } = numbersOf(now, before, history)
  const shed = is.shed.reduce((sum, { count }) => sum + count, 0)
  element('period').textContent = `Rates, shares and times are those of ${period}.`
  drawTiles(element('main-numbers'), [
    {
      name: 'Answered from the cache',
      value: percent(hits, asked),
      note: `${decimals(hits)} of ${counted(asked, 'request')}`,
    },
    {
      name: 'Errors (5xx)',
      value: percent(failed, asked),
      note:
        shed === 0
          ? counted(failed, 'error')
          : `${decimals(shed)} requests refused for overload since the start`,
      ...(failed > 0 ? { mood: 'bad' } : {}),
    },
    {
      name: 'Response time, 99 % within',
      value: p99,
      note: p50.startsWith('<') ? `half take less than ${p50.slice(2)}` : `half within ${p50}`,
    },
  ])
  drawTiles(element('numbers'), [
    {
      name: 'Requests',
      value: rateText(perSecond),
      note: `${decimals(is.requests.total)} since the start`,
    },
    ...stateTiles(is),
  ])
}

/** What costs most, in one sentence that leads to all of it. @param {Report} report */
export const drawLoss = ({ advice, requests }) => {
  const [worst] = advice
  if (worst === undefined) {
    element('loss').textContent =
      requests.total === 0 ? 'No request yet.' : 'Nothing that you could change in the settings costs hits.'
    return
  }
  const lost =
    worst.share === undefined
      ? `${worst.route} emptied the cache ${counted(worst.count, 'time')}`
      : `${worst.route} (${worst.service}), ${decimals(worst.count)} of ${decimals(worst.reads)} ${worst.unit}`
  element('loss').replaceChildren(
    `What costs you most hits: ${lost}. `,
    make('a', { href: '#advice' }, `${counted(advice.length, 'cause')}, and what to do`),
  )
}

/** @typedef {Report['routes'][number]} Route */

/** @param {Seen} now @param {Seen} before */
export const drawRoutes = (now, before) => {
  const seconds = (now.at - before.at) / 1000
  const was = new Map(before.report.routes.map((row) => [`${row.service} ${row.route}`, row]))
  const rows = now.report.routes.map((/** @type {Route} */ row) => {
    const earlier = was.get(`${row.service} ${row.route}`)
    return [
      row.route,
      row.service,
      rateText(rate(row.requests, earlier?.requests ?? 0, seconds)),
      decimals(row.requests),
      percent(row.hits, row.requests),
      withinText(row.buckets, earlier?.buckets ?? [], 0.5),
      withinText(row.buckets, earlier?.buckets ?? [], 0.99),
      row.errors > 0 ? { text: decimals(row.errors), mood: /** @type {const} */ ('bad') } : '0',
    ]
  })
  drawTable(
    element('routes'),
    [
      'Route',
      'Service',
      '#Rate',
      '#Since the start',
      '#From the cache',
      '#Half within',
      '#99 % within',
      '#Errors',
    ],
    rows,
    'No request yet.',
  )
}
