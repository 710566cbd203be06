// Hosts, services and upstreams as one picture: a row for each service, drawn anew when something in it changes.

import { read } from './ask.js'
import { element, make } from './draw.js'
import { changeOf, stateOf } from './upstreams.js'

/** @typedef {import('../../src/admin/status-report.ts').StatusReport} Report */
/** @typedef {import('./upstreams.js').Target} Target */
/** @typedef {{ hosts?: readonly string[], mount?: string, contract?: string }} Service */

const mostHosts = 4
const mostServices = 100

/** @type {{ hash: string, services: Readonly<Record<string, Service>> }} */
let configured = { hash: '', services: {} }

/** Asks once for each configuration. @param {Report} report */
export const learnServices = async ({ configHash }) => {
  if (configHash === configured.hash) return
  const { ok, content } = await read('config')
  if (ok) configured = { hash: configHash, services: content.services }
}

/** @param {string} text @param {string} [note] @param {string} [mood] */
const box = (text, note = '', mood = '') =>
  make(
    'li',
    { class: `box ${mood}`.trim() },
    make('span', { class: 'code' }, text),
    ...(note === '' ? [] : [make('span', { class: 'quiet' }, note)]),
  )

/** @param {readonly string[]} hosts */
const hostBoxes = (hosts) => {
  const more = hosts.length - mostHosts
  const shown = hosts.slice(0, mostHosts).map((host) => box(host))
  if (hosts.length === 0) return [box('any host')]
  return more > 0 ? [...shown, box(`and ${more} more`)] : shown
}

let drawn = ''

/** @param {Report} report @param {import('./upstreams.js').Changes} changes */
export const drawMap = ({ upstreams }, changes) => {
  const rows = upstreams.slice(0, mostServices).map(({ service, breaker, targets }) => {
    const { hosts = [], mount = '/', contract = '' } = configured.services[service] ?? {}
    const ends = targets.map((/** @type {Target} */ target) => {
      const { text, mood = '' } = stateOf(target)
      const why = mood === 'bad' ? ` ${changeOf(changes, service, target.target)}` : ''
      return { target: target.target, note: `${text}${why}`, mood }
    })
    return { service, breaker, hosts, mount, contract, ends }
  })
  // Drawn only when it differs: a reader's place in it stays.
  const next = JSON.stringify(rows)
  if (next === drawn) return
  drawn = next
  element('map').replaceChildren(
    ...rows.map(({ service, breaker, hosts, mount, contract, ends }) =>
      make(
        'li',
        { class: 'path' },
        make('ul', { 'aria-label': 'Hosts' }, ...hostBoxes(hosts)),
        make(
          'ul',
          { 'aria-label': 'Service' },
          box(
            service,
            `contract ${contract}, below ${mount}${breaker === 'closed' ? '' : `, breaker ${breaker}`}`,
            breaker === 'closed' ? '' : 'bad',
          ),
        ),
        make(
          'ul',
          { 'aria-label': 'Upstreams' },
          ...ends.map(({ target, note, mood }) => box(target, note, mood)),
        ),
      ),
    ),
  )
  element('map-more').textContent =
    upstreams.length > mostServices ? `and ${upstreams.length - mostServices} more services` : ''
}
