// Explains one request, in sentences.

import { read } from './ask.js'
import { drawTable, element, make } from './draw.js'

/** The words of a key: `cacheKey` is `cache key`. @param {string} key */
const wordsOf = (key) => key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** @param {unknown} value */
const textOf = (value) => {
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.join(', ') : JSON.stringify(value)
}

/** @param {FormData} data @param {(answer: { status: number, content: { detail?: string } }) => string} fault */
export const explain = async (data, fault) => {
  const query = new URLSearchParams({ method: String(data.get('method')), url: String(data.get('url')) })
  const header = String(data.get('header'))
  if (header !== '') query.set('header', header)
  const answer = await read(`explain?${query}`)
  element('explained').hidden = false
  const { inWords = [], ...aspects } = answer.ok ? answer.content : { inWords: [fault(answer)] }
  element('explanation').replaceChildren(
    ...inWords.map((/** @type {string} */ sentence) => make('p', {}, sentence)),
  )
  element('aspects-all').hidden = !answer.ok
  drawTable(
    element('aspects'),
    ['What', 'Value'],
    Object.entries(aspects).map(([key, value]) => [wordsOf(key), { text: textOf(value), kind: 'code' }]),
    'Nothing more is known.',
  )
}
