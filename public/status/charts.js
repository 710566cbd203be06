// Charts of the last hour, in steps of ten seconds.

import { read } from './ask.js'
import { element, make, makeSvg } from './draw.js'
import { decimals, duration } from './numbers.js'

/** @typedef {ReturnType<typeof import('../../src/observability/history.ts').historyView>} History */
/** @typedef {{ name: string, values: readonly (number | null)[], style: string }} Line */

const everyMs = 10_000
const width = 720
const height = 120

/** @param {readonly (number | null)[]} values */
const largest = (values) =>
  values.reduce((/** @type {number} */ most, value) => Math.max(most, value ?? 0), 0)

/** @param {readonly (number | null)[]} values @param {number} most */
const pathOf = (values, most) => {
  let path = ''
  let isDrawing = false
  for (const [at, value] of values.entries()) {
    if (value === null) {
      isDrawing = false
      continue
    }
    const x = ((width * at) / Math.max(1, values.length - 1)).toFixed(1)
    const y = (height - 2 - ((height - 6) * value) / most).toFixed(1)
    // A value between two gaps is a dot: a line of no length with round ends.
    path += isDrawing ? `L${x} ${y}` : `M${x} ${y}h0`
    isDrawing = true
  }
  return path
}

/**
 * @param {string} title
 * @param {readonly Line[]} lines
 * @param {(value: number) => string} text
 * @param {readonly string[]} times below the chart
 * @param {number} [least] the scale ends there, or higher
 */
const chart = (title, lines, text, times, least = 1e-9) => {
  const most = Math.max(least, ...lines.map(({ values }) => largest(values)))
  const picture = makeSvg('svg', {
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  })
  for (const at of [0.25, 0.5, 0.75]) {
    const x = String(width * at)
    picture.append(makeSvg('path', { d: `M${x} 0V${height}`, class: 'grid' }))
  }
  for (const { values, style } of lines)
    picture.append(makeSvg('path', { d: pathOf(values, most), class: style }))
  const isEmpty = lines.every(({ values }) => values.every((value) => value === null || value === 0))
  const peaks = lines.map(({ name, values, style }) =>
    make('span', { class: `key ${style}` }, `${name === '' ? '' : `${name} `}up to ${text(largest(values))}`),
  )
  const note = make('p', { class: 'quiet keys' }, ...(isEmpty ? ['Nothing in the last hour.'] : peaks))
  const axis = make(
    'p',
    { class: 'quiet times', 'aria-hidden': 'true' },
    ...times.map((time) => make('span', {}, time)),
  )
  return make('figure', {}, make('figcaption', {}, title), note, picture, axis)
}

/** Columns of a chart: of four minutes, or longer ones as the gateway has run. */
const spans = [24, 96, 192, 360]

/** @param {History} whole @returns {History} */
const sinceStart = (whole) => {
  const { length } = whole.requests
  const ran = length - whole.requests.findIndex((count) => count !== null)
  const span = spans.find((columns) => columns >= ran) ?? length
  /** @template Value @param {readonly Value[]} values */
  const last = (values) => values.slice(-span)
  const { requests, errors, hitRatio, p50, p99 } = whole
  return {
    ...whole,
    requests: last(requests),
    errors: last(errors),
    hitRatio: last(hitRatio),
    p50: last(p50),
    p99: last(p99),
  }
}

/** @param {History} whole */
const draw = (whole) => {
  const history = sinceStart(whole)
  const minutes = (history.requests.length * history.seconds) / 60
  const times = [
    `${decimals(minutes)} min ago`,
    ...[0.75, 0.5, 0.25].map((part) => decimals(part * minutes)),
    'now',
  ]
  const perSecond = history.requests.map((count) => (count === null ? null : count / history.seconds))
  const share = (/** @type {number} */ value) => `${decimals(100 * value)} %`
  element('charts').replaceChildren(
    chart(
      'Requests per second',
      [{ name: '', values: perSecond, style: 'line' }],
      (value) => `${decimals(value)} /s`,
      times,
    ),
    chart(
      'Answered from the cache',
      [{ name: '', values: history.hitRatio, style: 'line' }],
      share,
      times,
      1,
    ),
    chart(
      'Response time',
      [
        { name: '99 %', values: history.p99, style: 'line second' },
        { name: 'median', values: history.p50, style: 'line' },
      ],
      duration,
      times,
    ),
    chart(
      'Errors (5xx) in ten seconds',
      [{ name: '', values: history.errors, style: 'line failed' }],
      decimals,
      times,
    ),
  )
}

/** @param {readonly string[]} services */
const offer = (services) => {
  const select = /** @type {HTMLSelectElement} */ (element('history-service'))
  const known = [...select.options].map(({ value }) => value).slice(1)
  if (known.join(' ') === services.join(' ')) return
  const chosen = select.value
  const first = make('option', { value: '' }, 'all services')
  select.replaceChildren(first, ...services.map((name) => make('option', { value: name }, name)))
  select.value = services.includes(chosen) ? chosen : ''
}

const refresh = async () => {
  const { value } = /** @type {HTMLSelectElement} */ (element('history-service'))
  const { ok, content } = await read(`history?service=${encodeURIComponent(value)}`)
  if (!ok) return
  offer(content.services)
  draw(content)
}

/** Draws the charts now, at each change of the service, and every ten seconds while the page is seen. */
export const showHistory = () => {
  const again = () => refresh().catch(() => undefined)
  element('history-service').addEventListener('change', again)
  const poll = async () => {
    if (!document.hidden) await again()
    setTimeout(poll, everyMs)
  }
  return poll()
}
