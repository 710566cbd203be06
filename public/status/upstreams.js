// What stands behind the gateway and in front of it: upstreams, change feeds, caches in front, batches.

import { drawTable, element } from './draw.js'
import { age, decimals, duration, quantileText } from './numbers.js'

/** @typedef {import('../../src/admin/status-report.ts').StatusReport} Report */
/** @typedef {{ at: number, report: Report }} Seen */
/** @typedef {import('../../src/observability/history.ts').RecentEvents['upstreams']} Changes */
/** @typedef {Report['upstreams'][number]['targets'][number]} Target */

/** Of the last half minute; while nothing was sent in it, since the start. @param {Target} is @param {Target | undefined} was @param {number} share */
const latency = (is, was, share) => {
  const recent = quantileText(is.buckets, was?.buckets ?? [], share)
  return recent === '–' ? quantileText(is.buckets, [], share) : recent
}

/** @param {Target} target */
export const stateOf = ({ isKnown, up, leftOut }) => {
  if (!isKnown) return { text: 'not contacted yet' }
  if (up) return { text: 'up', mood: /** @type {const} */ ('good') }
  return {
    text: leftOut ? 'down, gets no requests' : 'down, still gets requests',
    mood: /** @type {const} */ ('bad'),
  }
}

/** Since when, and why. @param {Changes} changes @param {string} service @param {string} target '' for the breaker */
export const changeOf = (changes, service, target) => {
  const found = changes.find((change) => change.service === service && change.target === target)
  if (found === undefined) return ''
  const at = new Date(found.at)
  const isToday = at.toDateString() === new Date().toDateString()
  const time = isToday ? at.toLocaleTimeString('en-GB') : at.toLocaleString('en-GB')
  return `since ${time}: ${found.cause}`
}

const breakerWords = {
  closed: 'closed',
  open: 'open: requests are refused',
  'half-open': 'half-open: a few requests try',
}

/** @param {string} breaker */
const breakerOf = (breaker) =>
  breaker === 'closed'
    ? breaker
    : {
        text: breakerWords[/** @type {keyof typeof breakerWords} */ (breaker)] ?? breaker,
        mood: /** @type {const} */ ('bad'),
      }

/** @param {Seen} now @param {Seen} before @param {Changes} changes */
export const drawUpstreams = ({ report: { upstreams } }, { report: last }, changes) => {
  const was = new Map(
    last.upstreams.flatMap(({ service, targets }) =>
      targets.map((target) => [`${service} ${target.target}`, target]),
    ),
  )
  const rows = upstreams.flatMap(({ service, breaker, inFlight, waiting, retriesLeft, targets }) =>
    targets.map((target) => [
      target.target,
      service,
      stateOf(target),
      [
        changeOf(changes, service, target.target),
        breaker === 'closed' ? '' : `breaker ${changeOf(changes, service, '')}`,
      ]
        .filter((text) => text !== '')
        .join('; '),
      breakerOf(breaker),
      latency(target, was.get(`${service} ${target.target}`), 0.5),
      latency(target, was.get(`${service} ${target.target}`), 0.99),
      decimals(target.outstanding),
      `${decimals(inFlight)} / ${decimals(waiting)}`,
      decimals(target.attempts),
      target.failures > 0 ? { text: decimals(target.failures), mood: /** @type {const} */ ('warn') } : '0',
      decimals(retriesLeft),
    ]),
  )
  const head = [
    'Target',
    'Service',
    'State',
    'Since when, and why',
    'Breaker',
    '#Half within',
    '#99 % within',
  ]
  const counts = ['#In flight', '#Service: in flight / queued', '#Attempts', '#Failed', '#Retries left']
  drawTable(element('upstreams'), [...head, ...counts], rows, 'No upstream.')
}

const feedMoods = /** @type {const} */ ({ heard: 'good', cold: 'warn', behind: 'warn', silent: 'bad' })
const feedWords = {
  heard: 'every change is known',
  cold: 'nothing heard yet',
  behind: 'changes are missing',
  silent: 'nothing is heard any more',
}

/** @param {Report} report */
export const drawFeeds = ({ changes }) =>
  drawTable(
    element('feeds'),
    ['Service', 'State', '#Behind by', '#Changes', '#Times everything was dropped'],
    changes.map(({ service, state, lagSeconds, applied, serviceDrops }) => {
      const known = /** @type {keyof typeof feedMoods} */ (state)
      return [
        service,
        { text: `${state}: ${feedWords[known]}`, mood: feedMoods[known] },
        duration(lagSeconds ?? undefined),
        decimals(applied),
        decimals(serviceDrops),
      ]
    }),
    'No service reports its changes (services.*.changes).',
  )

/** @param {Report} report */
export const drawReceivers = ({ receivers }) =>
  drawTable(
    element('receivers'),
    ['Cache in front', 'Service', 'State', '#Unconfirmed for', '#Purges confirmed', '#Failed'],
    receivers.map(({ service, receiver, behind, lagSeconds, confirmed, failed }) => [
      receiver,
      service,
      behind
        ? { text: 'a purge is not confirmed', mood: /** @type {const} */ ('bad') }
        : { text: 'all purges confirmed', mood: /** @type {const} */ ('good') },
      behind ? age(lagSeconds) : '–',
      decimals(confirmed),
      failed > 0 ? { text: decimals(failed), mood: /** @type {const} */ ('warn') } : '0',
    ]),
    'Trellis purges no cache in front (services.*.downstream).',
  )

/** @param {Report} report */
export const drawBatches = ({ batch }) => {
  const rows = [
    ...(batch.batches > 0 ? [['batches', decimals(batch.batches)]] : []),
    ...batch.items.map(({ outcome, count }) => [`items ${outcome}`, decimals(count)]),
    ...batch.splits.map(({ split, count }) => [`sent as ${split}`, decimals(count)]),
  ]
  drawTable(element('batch'), ['Count of', '#Since the start'], rows, 'No batch yet.')
}
