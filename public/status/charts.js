// Charts of the last hour, in steps of ten seconds.

import { read } from './ask.js'
import { drawTable, element, make, makeSvg } from './draw.js'
import { decimals, durationFrom, rateText } from './numbers.js'

/** @typedef {ReturnType<typeof import('../../src/observability/history.ts').historyView>} History */
/** @typedef {{ name: string, values: readonly (number | null)[], style: string }} Line */

const everyMs = 10_000
const width = 720
const height = 120

/** @param {readonly (number | null)[]} values */
const largest = (values) =>
  values.reduce((/** @type {number} */ most, value) => Math.max(most, value ?? 0), 0)

/** @param {number} at @param {number} columns */
const xOf = (at, columns) => ((width * at) / Math.max(1, columns - 1)).toFixed(1)

/** @param {readonly (number | null)[]} values @param {number} most */
const pathOf = (values, most) => {
  let path = ''
  let isDrawing = false
  for (const [at, value] of values.entries()) {
    if (value === null) {
      isDrawing = false
      continue
    }
    const y = (height - 4 - ((height - 8) * value) / most).toFixed(1)
    path += `${isDrawing ? 'L' : 'M'}${xOf(at, values.length)} ${y}`
    isDrawing = true
  }
  return path
}

/** Where single values between gaps lie, and values among zeros: lines alone would hide them. @param {readonly (number | null)[]} values @param {number} most */
const dotsOf = (values, most) =>
  values
    .map((value, at) => {
      const isAlone = [values[at - 1], values[at + 1]].every((beside) => (beside ?? 0) === 0)
      if (value === null || !isAlone || (value === 0 && values[at - 1] === 0)) return ''
      return value === 0 && values[at + 1] === 0
        ? ''
        : `M${xOf(at, values.length)} ${(height - 4 - ((height - 8) * value) / most).toFixed(1)}h0`
    })
    .join('')

/** Where the pointer is: the column of a chart with this many. @param {PointerEvent} event @param {number} columns */
const columnAt = ({ offsetX, currentTarget }, columns) => {
  const { clientWidth } = /** @type {Element} */ (currentTarget)
  return Math.min(columns - 1, Math.max(0, Math.round((offsetX / Math.max(1, clientWidth)) * (columns - 1))))
}

/** @param {string} text */
const upTo = (text) => (text.startsWith('<') ? text : `up to ${text}`)

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
  for (const { values, style } of lines) {
    const look = peak === 0 ? 'line' : style
    picture.append(makeSvg('path', { d: pathOf(values, most), class: look }))
    picture.append(makeSvg('path', { d: dotsOf(values, most), class: `${look} dots` }))
  }
  const keys = (/** @type {(line: Line) => string} */ textOf) =>
    lines.map((line) =>
      make(
        'span',
        { class: `key ${line.style}` },
        `${line.name === '' ? '' : `${line.name} `}${textOf(line)}`,
      ),
    )
  const summary = peak === 0 ? ['Nothing in this time.'] : keys(({ values }) => upTo(text(largest(values))))
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

/** @param {History} whole */
const columnsRun = ({ requests }) => requests.length - requests.findIndex((count) => count !== null)

/** @param {History} whole @returns {History} */
const sinceStart = (whole) => {
  const ran = columnsRun(whole)
  const span = spans.find((columns) => columns >= ran) ?? whole.requests.length
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

/** What the charts cover. @param {History} whole */
const titleOf = (whole) => {
  const columns = columnsRun(whole)
  const minutes = Math.max(1, Math.round((columns * whole.seconds) / 60))
  if (columns >= whole.requests.length) return 'The last hour'
  return minutes === 1 ? 'The last minute, since the start' : `The last ${minutes} minutes, since the start`
}

/** @param {number | null} value @param {(value: number) => string} text */
const cellOf = (value, text) => (value === null ? '–' : text(value))

/** The charts as a table, newest first: made when somebody opens it. @param {History} history @param {(column: number) => string} timeOf */
const drawRows = (history, timeOf) => {
  const timeText = (/** @type {number} */ seconds) => durationFrom(history.finest, seconds)
  const rows = history.requests
    .map((count, at) => [
      timeOf(at),
      cellOf(count, decimals),
      cellOf(history.hitRatio[at] ?? null, shareText),
      cellOf(history.p50[at] ?? null, timeText),
      cellOf(history.p99[at] ?? null, timeText),
      cellOf(history.errors[at] ?? null, decimals),
    ])
    .filter(([, count]) => count !== '–' && count !== '0')
    .toReversed()
  const head = [
    'Ten seconds until',
    '#Requests',
    '#From the cache',
    '#Half within',
    '#99 % within',
    '#Errors',
  ]
  drawTable(element('history-rows'), head, rows, 'No request in this time.')
}

/** @param {number} value */
const shareText = (value) => `${decimals(100 * value)} %`

/** @param {History} whole */
const draw = (whole) => {
  const history = sinceStart(whole)
  const end = history.end * 1000
  element('history-title').textContent = titleOf(whole)
  const columns = history.requests.length
  const timeOf = (/** @type {number} */ column) =>
    new Date(end - (columns - 1 - column) * history.seconds * 1000).toLocaleTimeString('en-GB', {
      hour: '2-digit',
      minute: '2-digit',
      ...(columns <= 24 ? { second: '2-digit' } : {}),
    })
  const perSecond = history.requests.map((count) => (count === null ? null : count / history.seconds))
  if (/** @type {HTMLDetailsElement} */ (element('history-table')).open) drawRows(history, timeOf)
  element('charts').replaceChildren(
    chart('Requests per second', [{ name: '', values: perSecond, style: 'line' }], rateText, timeOf),
    chart(
      'Answered from the cache',
      [{ name: '', values: history.hitRatio, style: 'line' }],
      shareText,
      timeOf,
      1,
    ),
    chart(
      'Response time',
      [
        { name: '99 % within', values: history.p99, style: 'line second' },
        { name: 'half within', values: history.p50, style: 'line' },
      ],
      (seconds) => durationFrom(history.finest, seconds),
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

/** @type {History | undefined} */
let latest

/** Of all services together; undefined before it was read. */
export const latestHistory = () => latest

const refresh = async () => {
  const { value } = /** @type {HTMLSelectElement} */ (element('history-service'))
  const { ok, content } = await read(`history?service=${encodeURIComponent(value)}`)
  if (!ok) return
  if (value === '') latest = content
  offer(content.services)
  draw(content)
}

/** Draws the charts now, at each change of the service, and every ten seconds while the page is seen. */
export const showHistory = () => {
  const again = () => refresh().catch(() => undefined)
  element('history-service').addEventListener('change', again)
  element('history-table').addEventListener('toggle', again)
  const poll = async () => {
    if (!document.hidden) await again()
    setTimeout(poll, everyMs)
  }
  return poll()
}
