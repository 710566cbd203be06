// Fetches the report every two seconds while the page is visible, and shows rates between two of them.

import { listen } from './actions.js'
import { read } from './ask.js'
import { latestHistory, showHistory } from './charts.js'
import { drawTable, element, make } from './draw.js'
import { showLists, upstreamChanges } from './entries.js'
import { drawMap, learnServices } from './map.js'
import { age, decimals } from './numbers.js'
import { drawLoss, drawNumbers, drawRoutes } from './overview.js'
import { drawBatches, drawFeeds, drawReceivers, drawUpstreams } from './upstreams.js'
import { followAddress, showView } from './views.js'

/** @typedef {import('../../src/admin/status-report.ts').StatusReport} Report */
/** @typedef {{ at: number, report: Report }} Seen */

const everyMs = 2000
/** Rates are over this many reports: half a minute. */
const window = 15

/** @type {Seen[]} */
const seen = []

/** @param {Report} report */
const verdictOf = ({ readiness }) => {
  if (!readiness.ready) return { text: 'Not ready', mood: 'bad' }
  if (readiness.degraded.length > 0) return { text: 'Ready, with problems', mood: 'warn' }
  return { text: 'Ready', mood: 'good' }
}

/** @param {Report} report */
const drawHead = (report) => {
  const { text, mood } = verdictOf(report)
  const verdict = element('verdict')
  // Spoken by screen readers when it changes, so it is only written then.
  if (verdict.textContent !== text) verdict.textContent = text
  verdict.className = `verdict ${mood}`
  const degraded = report.readiness.degraded.map(({ text: problem, service }) =>
    service === undefined ? problem : `${service}: ${problem}`,
  )
  element('reasons').textContent = [...report.readiness.reasons, ...degraded].join(', ')
  const workers =
    report.workers.wanted > 1 ? `, ${report.workers.ready} of ${report.workers.wanted} workers` : ''
  const up = Math.max(0, Date.now() / 1000 - report.startedAt)
  element('build').textContent =
    `version ${report.build.version}, Node ${report.build.node}, configuration ${report.configHash}, up ${age(up)}${workers}`
}

/** @param {Report} report */
const drawNotices = ({ notices }) => {
  element('notices').hidden = notices.length === 0
  element('notices-list').replaceChildren(
    ...notices.map(({ subject, text }) => make('li', {}, make('strong', {}, subject), ` ${text}`)),
  )
}

/** @param {Seen} now @param {Seen} before */
const drawRefusals = (now, before) => {
  const keyOf = (/** @type {{ code: string, route: string, service: string }} */ row) =>
    `${row.service} ${row.route} ${row.code}`
  const was = new Map(before.report.refusals.map((row) => [keyOf(row), row.count]))
  const rows = now.report.refusals
    .map((row) => ({ ...row, recent: row.count - (was.get(keyOf(row)) ?? 0) }))
    .sort((one, other) => other.recent - one.recent || other.count - one.count)
  const others = [
    ...now.report.protocolRefusals.map(({ reason, count }) => [
      reason,
      'malformed HTTP',
      '',
      decimals(count),
    ]),
    ...now.report.shed.map(({ class: name, signal, count }) => [
      `overload: ${name}`,
      signal,
      '',
      decimals(count),
    ]),
    ...now.report.rateLimited.map(({ limit, count }) => ['rate limit', limit, '', decimals(count)]),
  ]
  drawTable(
    element('refused'),
    ['Reason', 'Where', '#Last 30 s', '#Since the start'],
    [
      ...rows.map(({ code, service, route, recent, count }) => [
        code,
        [service, route].filter((text) => text !== '').join(' '),
        decimals(recent),
        decimals(count),
      ]),
      ...others,
    ],
    'Nothing refused yet.',
  )
}

/** What the reasons are about. @type {Readonly<Record<Report['notCached'][number]['what'], string>>} */
const about = {
  bypassed: 'bypassed the cache',
  forwarded: 'asked the upstream',
  'not stored': 'was not stored',
}

/** @param {Seen} now @param {Seen} before */
const drawNotCached = (now, before) => {
  const keyOf = (/** @type {Report['notCached'][number]} */ { service, what, reason }) =>
    `${service} ${what} ${reason}`
  const was = new Map(before.report.notCached.map((row) => [keyOf(row), row.count]))
  const rows = now.report.notCached
    .map((row) => ({ ...row, recent: row.count - (was.get(keyOf(row)) ?? 0) }))
    .sort((one, other) => other.recent - one.recent || other.count - one.count)
    .map(({ what, reason, service, recent, count }) => [
      reason,
      about[what],
      service,
      decimals(recent),
      decimals(count),
    ])
  drawTable(
    element('not-cached'),
    ['Reason', 'The request or response', 'Service', '#Last 30 s', '#Since the start'],
    rows,
    'No read has gone to the upstream.',
  )
}

/** @param {Report} report */
const drawAdvice = ({ advice, requests }) =>
  drawTable(
    element('advice'),
    ['Route', 'Service', '#Lost hits', 'What to do', 'Settings to copy'],
    advice.map(({ route, service, count, reads, unit, share, text, yaml }) => [
      route,
      service,
      share === undefined ? `${decimals(count)} times` : `${decimals(count)} of ${decimals(reads)} ${unit}`,
      `${text[0]?.toUpperCase()}${text.slice(1)}.`.replaceAll('`', ''),
      yaml === undefined ? '' : { text: yaml, kind: /** @type {const} */ ('yaml') },
    ]),
    requests.total === 0
      ? 'No request has come yet.'
      : 'Nothing that you could change in the settings costs hits.',
  )

/** @param {Report} report */
const show = (report) => {
  const now = { at: performance.now(), report }
  seen.push(now)
  if (seen.length > window + 1) seen.shift()
  const before = seen[0] ?? now
  drawHead(report)
  drawNumbers(now, before, latestHistory())
  drawNotices(report)
  drawLoss(report)
  drawMap(report, upstreamChanges())
  drawUpstreams(now, before, upstreamChanges())
  drawRoutes(now, before)
  drawRefusals(now, before)
  drawAdvice(now.report)
  drawNotCached(now, before)
  drawFeeds(report)
  drawReceivers(report)
  drawBatches(report)
}

/** @param {string} text */
const unreachable = (text) => {
  const verdict = element('verdict')
  if (verdict.textContent !== text) verdict.textContent = text
  verdict.className = 'verdict bad'
}

const poll = async () => {
  if (!document.hidden) {
    try {
      const { ok, status, content } = await read('status')
      if (ok) {
        await learnServices(content)
        show(content)
      } else if (status === 401) {
        unreachable('Enter the admin token')
        showView('tools')
      } else unreachable(`The gateway refused the request (${status})`)
    } catch {
      unreachable('The gateway cannot be reached')
    }
  }
  // Shown once it is whole: nothing jumps.
  document.body.removeAttribute('aria-busy')
  setTimeout(poll, everyMs)
}

listen()
followAddress()
// First what the numbers are made of.
await Promise.all([showHistory(), showLists()])
await poll()
