// Fetches the report every two seconds while the page is visible, and shows rates between two of them.

import { listen } from './actions.js'
import { read } from './ask.js'
import { showHistory } from './charts.js'
import { drawTable, drawTiles, element, make } from './draw.js'
import { showLists } from './entries.js'
import { age, counted, countOf, decimals, duration, percent, quantile, rate, size } from './numbers.js'
import { followAddress, showView } from './views.js'

/** @typedef {import('../../src/admin/status-report.ts').StatusReport} Report */
/** @typedef {{ at: number, report: Report }} Seen */

const everyMs = 2000
/** Rates are over this many reports: half a minute. */
const window = 15
const fromCache = ['hit', 'revalidated', 'collapsed', 'stale']

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

/** @param {Seen} now @param {Seen} before */
const drawNumbers = (now, before) => {
  const seconds = (now.at - before.at) / 1000
  const [{ report: is }, { report: was }] = [now, before]
  const perSecond = rate(is.requests.total, was.requests.total, seconds)
  const asked = is.requests.total - was.requests.total
  const hits =
    countOf(is.requests.byCache, 'cache', fromCache) - countOf(was.requests.byCache, 'cache', fromCache)
  const failed =
    countOf(is.requests.byStatus, 'status_class', ['5xx']) -
    countOf(was.requests.byStatus, 'status_class', ['5xx'])
  const shed = is.shed.reduce((sum, { count }) => sum + count, 0)
  const fill = is.cache.maxBytes > 0 ? is.cache.bytes / is.cache.maxBytes : 0
  drawTiles(element('numbers'), [
    {
      name: 'Requests',
      value: `${decimals(perSecond)} /s`,
      note: `${decimals(is.requests.total)} since the start`,
    },
    {
      name: 'Answered from the cache',
      value: percent(hits, asked),
      note: `${decimals(is.cache.collapsed)} collapsed since the start`,
    },
    {
      name: 'Response time (median)',
      value: duration(quantile(is.durations.buckets, was.durations.buckets, 0.5)),
      note: `99 % within ${duration(quantile(is.durations.buckets, was.durations.buckets, 0.99))}`,
    },
    {
      name: 'Errors (5xx)',
      value: percent(failed, asked),
      note: `${decimals(shed)} shed since the start`,
      ...(failed > 0 ? { mood: /** @type {const} */ ('bad') } : {}),
    },
    {
      name: 'In flight',
      value: decimals(is.requests.inFlight),
      note: counted(is.requests.connections, 'connection'),
    },
    {
      name: 'Cache',
      value: size(is.cache.bytes),
      note: `${percent(fill, 1)} of ${size(is.cache.maxBytes)}, ${counted(is.cache.entries, 'stored response')}, ${decimals(is.cache.evictions)} evicted`,
      ...(is.memoryTrusted ? {} : { mood: /** @type {const} */ ('warn') }),
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
    { name: 'Memory', value: size(is.process.residentBytes), note: `heap ${size(is.process.heapBytes)}` },
    {
      name: 'Event loop delay',
      value: duration(is.process.loopDelaySeconds),
      note: '99 % below; 10 ms when idle',
      ...(is.process.loopDelaySeconds > 0.1 ? { mood: /** @type {const} */ ('warn') } : {}),
    },
  ])
}

/** @param {Report} report */
const drawNotices = ({ notices }) => {
  element('notices').hidden = notices.length === 0
  element('notices-list').replaceChildren(
    ...notices.map(({ subject, text }) => make('li', {}, make('strong', {}, subject), ` ${text}`)),
  )
}

/** @typedef {Report['upstreams'][number]['targets'][number]} Target */

/** Of the last half minute; while nothing was sent in it, since the start. @param {Target} is @param {Target | undefined} was @param {number} share */
const latency = (is, was, share) =>
  duration(quantile(is.buckets, was?.buckets ?? [], share) ?? quantile(is.buckets, [], share))

/** @param {Target} target */
const stateOf = ({ isKnown, up, leftOut }) => {
  if (!isKnown) return 'unknown'
  return up
    ? { text: 'up', mood: /** @type {const} */ ('good') }
    : { text: leftOut ? 'down, ejected' : 'down, in use', mood: /** @type {const} */ ('bad') }
}

/** @param {Seen} now @param {Seen} before */
const drawUpstreams = ({ report: { upstreams } }, { report: last }) => {
  const was = new Map(
    last.upstreams.flatMap(({ service, targets }) =>
      targets.map((target) => [`${service} ${target.target}`, target]),
    ),
  )
  const rows = upstreams.flatMap(({ service, breaker, inFlight, waiting, retriesLeft, targets }) =>
    targets.map((target) => [
      service,
      target.target,
      stateOf(target),
      breaker === 'closed' ? breaker : { text: breaker, mood: /** @type {const} */ ('bad') },
      latency(target, was.get(`${service} ${target.target}`), 0.5),
      latency(target, was.get(`${service} ${target.target}`), 0.99),
      decimals(target.outstanding),
      `${decimals(inFlight)} / ${decimals(waiting)}`,
      decimals(target.attempts),
      target.failures > 0 ? { text: decimals(target.failures), mood: /** @type {const} */ ('warn') } : '0',
      decimals(retriesLeft),
    ]),
  )
  drawTable(
    element('upstreams'),
    [
      'Service',
      'Target',
      'State',
      'Breaker',
      '#Median time',
      '#99 % within',
      '#In flight',
      '#Service: in flight / queued',
      '#Attempts',
      '#Failed',
      '#Retries left',
    ],
    rows,
    'No upstream.',
  )
}

/** @param {Seen} now @param {Seen} before */
const drawRoutes = (now, before) => {
  const seconds = (now.at - before.at) / 1000
  const was = new Map(before.report.routes.map((row) => [`${row.service} ${row.route}`, row]))
  const rows = now.report.routes.map((row) => [
    row.route,
    row.service,
    decimals(rate(row.requests, was.get(`${row.service} ${row.route}`)?.requests ?? 0, seconds)),
    decimals(row.requests),
    percent(row.hits, row.requests),
    duration(row.seconds / row.requests),
    row.errors > 0 ? { text: decimals(row.errors), mood: /** @type {const} */ ('bad') } : '0',
  ])
  drawTable(
    element('routes'),
    ['Route', 'Service', '#Per second', '#Since the start', '#From the cache', '#Mean time', '#Errors'],
    rows,
    'No request yet.',
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
      `shed: ${name}`,
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
    ['Route', 'Service', '#Lost', 'What to do', 'Settings to copy'],
    advice.map(({ route, service, count, reads, share, text, yaml }) => [
      route,
      service,
      share === undefined ? `${decimals(count)} times` : `${decimals(count)} of ${decimals(reads)} reads`,
      `${text[0]?.toUpperCase()}${text.slice(1)}.`,
      yaml === undefined ? '' : { text: yaml, kind: /** @type {const} */ ('yaml') },
    ]),
    requests.total === 0 ? 'No request has come yet.' : 'Nothing that settings could change costs hits.',
  )

const feedMoods = /** @type {const} */ ({ heard: 'good', cold: 'warn', behind: 'warn', silent: 'bad' })

/** @param {Report} report */
const drawFeeds = ({ changes }) =>
  drawTable(
    element('feeds'),
    ['Service', 'State', '#Behind by', '#Changes', '#Dropped everything'],
    changes.map(({ service, state, lagSeconds, applied, serviceDrops }) => [
      service,
      { text: state, mood: feedMoods[/** @type {keyof typeof feedMoods} */ (state)] },
      duration(lagSeconds ?? undefined),
      decimals(applied),
      decimals(serviceDrops),
    ]),
    'No service reports its changes (services.*.changes).',
  )

/** @param {Report} report */
const drawReceivers = ({ receivers }) =>
  drawTable(
    element('receivers'),
    ['Service', 'Receiver', 'State', '#Unconfirmed since', '#Purges confirmed', '#Failed'],
    receivers.map(({ service, receiver, behind, lagSeconds, confirmed, failed }) => [
      service,
      receiver,
      behind
        ? { text: 'behind', mood: /** @type {const} */ ('bad') }
        : { text: 'confirmed', mood: /** @type {const} */ ('good') },
      behind ? age(lagSeconds) : '–',
      decimals(confirmed),
      failed > 0 ? { text: decimals(failed), mood: /** @type {const} */ ('warn') } : '0',
    ]),
    'No cache in front is told of changes (services.*.downstream).',
  )

/** @param {Report} report */
const drawBatches = ({ batch }) => {
  const rows = [
    ...(batch.batches > 0 ? [['batches', decimals(batch.batches)]] : []),
    ...batch.items.map(({ outcome, count }) => [`items ${outcome}`, decimals(count)]),
    ...batch.splits.map(({ split, count }) => [`sent as ${split}`, decimals(count)]),
  ]
  drawTable(element('batch'), ['Count of', '#Since the start'], rows, 'No batch yet.')
}

/** @param {Report} report */
const show = (report) => {
  const now = { at: performance.now(), report }
  seen.push(now)
  if (seen.length > window + 1) seen.shift()
  const before = seen[0] ?? now
  drawHead(report)
  drawNumbers(now, before)
  drawNotices(report)
  drawUpstreams(now, before)
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
      if (ok) show(content)
      else if (status === 401) {
        unreachable('Enter the admin token')
        showView('tools')
      } else unreachable(`The gateway refused the request (${status})`)
    } catch {
      unreachable('The gateway cannot be reached')
    }
  }
  setTimeout(poll, everyMs)
}

listen()
followAddress()
await Promise.all([poll(), showHistory(), showLists()])
