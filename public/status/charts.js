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

/** Where the pointer is: the column of a chart with this many. @param {PointerEvent} event @param {number} columns */
const columnAt = ({ offsetX, currentTarget }, columns) => {
  const { clientWidth } = /** @type {Element} */ (currentTarget)
  return Math.min(columns - 1, Math.max(0, Math.round((offsetX / Math.max(1, clientWidth)) * (columns - 1))))
}

/**
 * @param {string} title
 * @param {readonly Line[]} lines
 * @param {(value: number) => string} text
 * @param {(column: number) => string} timeOf
 * @param {number} [least] the scale ends there, or higher
 */
const chart = (title, lines, text, timeOf, least = 1e-9) => {
  const columns = lines[0]?.values.length ?? 0
  const peak = Math.max(0, ...lines.map(({ values }) => largest(values)))
  const most = Math.max(least, peak)
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
    picture.append(makeSvg('path', { d: pathOf(values, most), class: peak === 0 ? 'line' : style }))
  const keys = (/** @type {(line: Line) => string} */ textOf) =>
    lines.map((line) =>
      make(
        'span',
        { class: `key ${line.style}` },
        `${line.name === '' ? '' : `${line.name} `}${textOf(line)}`,
      ),
    )
  const summary =
    peak === 0 ? ['Nothing in this time.'] : keys(({ values }) => `up to ${text(largest(values))}`)
  const note = make('p', { class: 'quiet keys' }, ...summary)
  picture.addEventListener('pointermove', (event) => {
    const column = columnAt(/** @type {PointerEvent} */ (event), columns)
    const shown = keys(({ values }) => {
      const value = values[column]
      return value === null || value === undefined ? 'no request' : text(value)
    })
    note.replaceChildren(make('span', {}, timeOf(column)), ...shown)
  })
  picture.addEventListener('pointerleave', () => note.replaceChildren(...summary))
  const scale = make(
    'p',
    { class: 'quiet scale', 'aria-hidden': 'true' },
    make('span', {}, peak === 0 && least < 1 ? '' : text(most)),
    make('span', {}, '0'),
  )
  const axis = make(
    'p',
    { class: 'quiet times', 'aria-hidden': 'true' },
    ...[0, 1 / 3, 2 / 3, 1].map((part) => make('span', {}, timeOf(Math.round(part * (columns - 1))))),
  )
  return make(
    'figure',
    {},
    make('figcaption', {}, title),
    note,
    make('div', { class: 'plot' }, scale, picture, axis),
  )
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
  const end = Date.now()
  const columns = history.requests.length
  const timeOf = (/** @type {number} */ column) =>
    new Date(end - (columns - 1 - column) * history.seconds * 1000).toLocaleTimeString('en-GB', {
      hour: '2-digit',
      minute: '2-digit',
      ...(columns <= 24 ? { second: '2-digit' } : {}),
    })
  const perSecond = history.requests.map((count) => (count === null ? null : count / history.seconds))
  const share = (/** @type {number} */ value) => `${decimals(100 * value)} %`
  element('charts').replaceChildren(
    chart(
      'Requests per second',
      [{ name: '', values: perSecond, style: 'line' }],
      (value) => `${decimals(value)} /s`,
      timeOf,
    ),
    chart(
      'Answered from the cache',
      [{ name: '', values: history.hitRatio, style: 'line' }],
      share,
      timeOf,
      1,
    ),
    chart(
      'Response time',
      [
        { name: '99 %', values: history.p99, style: 'line second' },
        { name: 'median', values: history.p50, style: 'line' },
      ],
      duration,
      timeOf,
    ),
    chart(
      'Errors (5xx) in ten seconds',
      [{ name: '', values: history.errors, style: 'line failed' }],
      decimals,
      timeOf,
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
