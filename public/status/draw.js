// Writes into the page. Texts become text nodes, so that no text can be markup.

const svgSpace = 'http://www.w3.org/2000/svg'

/** @param {string} id */
export const element = (id) => {
  const found = document.getElementById(id)
  if (found === null) throw new Error(`no element ${id}`)
  return found
}

/**
 * @param {string} name
 * @param {Record<string, string>} attributes
 * @param {...(string | Node)} children
 */
export const make = (name, attributes, ...children) => {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

/**
 * @param {string} name
 * @param {Record<string, string>} attributes
 */
export const makeSvg = (name, attributes) => {
  const made = document.createElementNS(svgSpace, name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  return made
}

/**
 * @typedef {{ name: string, value: string, note: string, mood?: 'good' | 'warn' | 'bad' | undefined }} Tile
 * @param {HTMLElement} parent
 * @param {readonly Tile[]} tiles
 */
export const drawTiles = (parent, tiles) => {
  parent.replaceChildren(
    ...tiles.map(({ name, value, note, mood }) => {
      const tile = make('div', { class: `tile ${mood ?? ''}`.trim() })
      tile.append(
        make('h2', {}, name),
        make('p', { class: 'value' }, value),
        make('p', { class: 'quiet' }, note),
      )
      return tile
    }),
  )
}

/**
 * @typedef {{ text: string, mood?: 'good' | 'warn' | 'bad' | undefined, kind?: 'code' | 'id' | 'yaml', href?: string } | string} Cell
 * @param {Cell} cell
 * @param {boolean} first names the row
 * @param {boolean} numeric
 * @param {string} title of the column: a narrow screen shows it beside each cell
 */
const tableCell = (cell, first, numeric, title) => {
  const { text, mood, kind, href } = typeof cell === 'string' ? { text: cell } : cell
  const content = href === undefined ? text : make('a', { href }, text)
  const made = make(first ? 'th' : 'td', { ...(first ? { scope: 'row' } : {}), 'data-title': title }, content)
  made.className = [numeric ? 'number' : '', mood ?? '', kind ?? ''].filter((name) => name !== '').join(' ')
  return made
}

/**
 * @param {HTMLElement} table
 * @param {readonly string[]} head titles of columns; `#` before a title means numbers
 * @param {readonly (readonly Cell[])[]} rows
 * @param {string} none shown when there are no rows
 */
export const drawTable = (table, head, rows, none) => {
  const numeric = head.map((name) => name.startsWith('#'))
  const titles = head.map((name, at) =>
    make('th', { scope: 'col', class: numeric[at] ? 'number' : '' }, name.replace('#', '')),
  )
  const lines = rows.map((cells) =>
    make(
      'tr',
      {},
      ...cells.map((cell, at) =>
        tableCell(cell, at === 0, numeric[at] ?? false, (head[at] ?? '').replace('#', '')),
      ),
    ),
  )
  const empty = make('tr', {}, make('td', { colspan: String(head.length), class: 'quiet' }, none))
  table.replaceChildren(
    make('thead', {}, make('tr', {}, ...titles)),
    make('tbody', {}, ...(lines.length === 0 ? [empty] : lines)),
  )
}
