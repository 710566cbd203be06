import { CST } from 'yaml'

/*
 * Reads YAML in the form in which programs write it: blocks by indentation, scalars, anchors, and no other flow than `[]` and `{}`. It
 * takes a tenth of the time of the parser for all of YAML, which reads the text whenever this reader gives up, and finds every fault.
 */

/** The text has something that this reader does not read: another form of YAML, or a fault. */
class OtherForm extends Error {}

const giveUp = (): never => {
  throw new OtherForm()
}

const deepest = 200
/** Lines of a text with its aliases replaced: some aliases of aliases would expand to gigabytes. */
const mostLines = 4_000_000
/** An implicit key is not longer (YAML 1.2.2 §7.4.2). */
const longestKey = 1000

const isOut = (character: string | undefined): boolean => character === undefined || character === ' '

/** Indicators that no plain scalar begins with. */
const indicators = new Set(',[]{}#&*!|>\'"%@`')

const beginsPlain = (text: string): boolean => {
  const first = text[0] ?? ''
  return '-?:'.includes(first) ? !isOut(text[1]) : !indicators.has(first)
}

const word = /^(?:~|[Nn]ull|NULL|[Tt]rue|TRUE|[Ff]alse|FALSE)?$/
const number = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/
const rareNumber = /^(?:0o[0-7]+|0x[\da-fA-F]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|-0+(?:\.0*)?)$/
/** The number of digits that a double holds. */
const longestNumber = 15

/** A plain scalar of the core schema (YAML 1.2.2 §10.3.2). */
const plainValue = (text: string): unknown => {
  if (word.test(text)) {
    const first = text[0]?.toLowerCase()
    return first === 't' ? true : first === 'f' ? false : null
  }
  if (rareNumber.test(text)) return giveUp()
  if (!number.test(text)) return text
  return text.length > longestNumber ? giveUp() : Number(text)
}

const documentMark = /^(?:---|\.\.\.)/

const integerKey = /^(?:0|[1-9]\d{0,14})$/

const plainKey = (text: string): string => {
  const isName =
    typeof plainValue(text) === 'string' || integerKey.test(text) || /^(?:true|false)$/.test(text)
  return isName && text !== '<<' && text !== '__proto__' && text.length <= longestKey ? text : giveUp()
}

type KeyAndRest = { readonly key: string; readonly from: number }

type QuotedEnd = { readonly value: string; readonly end: number }

class Reader {
  readonly #lines: readonly string[]
  #at = 0
  #cost = 0
  #depth = 0
  readonly #anchors = new Map<string, { readonly value: unknown; readonly cost: number }>()

  constructor(text: string) {
    this.#lines = text.split('\n')
  }

  document(): unknown {
    if (this.#lines[0] === '---') this.#at = 1
    this.#skip()
    const value = this.#block(-1)
    return this.#at >= this.#lines.length ? value : giveUp()
  }

  get #line(): string {
    return this.#lines[this.#at] ?? ''
  }

  #indent(line = this.#line): number {
    let at = 0
    while (line[at] === ' ') at += 1
    if (line[at] === '\t') giveUp()
    return at
  }

  /** Passes empty lines and comments. */
  #skip(): void {
    for (; this.#at < this.#lines.length; this.#at += 1) {
      const line = this.#line
      const indent = this.#indent()
      if (indent < line.length && line[indent] !== '#') break
    }
    if (/^(?:---|\.\.\.)(?: |$)/.test(this.#line) || this.#line.startsWith('%')) giveUp()
  }

  #next(): void {
    this.#at += 1
    this.#cost += 1
    if (this.#cost > mostLines) giveUp()
  }

  /** The node in the lines that are deeper than the one that contains it; null when there is none. `isOfMap`: lists need not be deeper. */
  #block(parent: number, isOfMap = false): unknown {
    if (this.#at >= this.#lines.length) return null
    const column = this.#indent()
    const isItem = this.#isItem(column)
    if (column > parent) return this.#node(column, parent)
    return isOfMap && isItem && column === parent ? this.#list(column) : null
  }

  #isItem(column: number): boolean {
    return this.#line[column] === '-' && isOut(this.#line[column + 1])
  }

  /** The node that begins in this line at this column. */
  #node(column: number, parent: number): unknown {
    this.#depth += 1
    if (this.#depth > deepest) giveUp()
    const found = this.#isItem(column) ? undefined : this.#keyAt(column)
    const value = this.#isItem(column)
      ? this.#list(column)
      : found === undefined
        ? this.#value(column, parent)
        : this.#map(column, found)
    this.#depth -= 1
    return value
  }

  #list(column: number): unknown[] {
    const items: unknown[] = []
    // The first item may begin behind another one in its line.
    do {
      const from = this.#textFrom(column + 1)
      items.push(from === undefined ? this.#blockBelow(column) : this.#anchored(from, column, true))
    } while (this.#at < this.#lines.length && this.#indent() === column && this.#isItem(column))
    return this.#ended(items, column)
  }

  #map(column: number, first: KeyAndRest): Record<string, unknown> {
    const map: Record<string, unknown> = {}
    let found: KeyAndRest | undefined = first
    while (found !== undefined) {
      const { key, from } = found
      if (Object.hasOwn(map, key)) giveUp()
      const start = this.#textFrom(from)
      map[key] = start === undefined ? this.#blockBelow(column, true) : this.#anchored(start, column, false)
      const isMore = this.#at < this.#lines.length && this.#indent() === column
      found = isMore ? (this.#keyAt(column) ?? giveUp()) : undefined
    }
    return this.#ended(map, column)
  }

  /** What follows is not deeper. */
  #ended<Value>(value: Value, column: number): Value {
    return this.#at < this.#lines.length && this.#indent() > column ? giveUp() : value
  }

  #blockBelow(parent: number, isOfMap = false): unknown {
    this.#next()
    this.#skip()
    return this.#block(parent, isOfMap)
  }

  /** Where the text of this line goes on; undefined when only a comment follows. */
  #textFrom(column: number): number | undefined {
    const line = this.#line
    let at = column
    while (line[at] === ' ') at += 1
    if (line[at] === '\t') giveUp()
    return at >= line.length || (line[at] === '#' && at > column) ? undefined : at
  }

  /** A value with its anchor, or an alias. An item of a list may be a block that begins in its line. */
  #anchored(column: number, parent: number, isItem: boolean): unknown {
    const line = this.#line
    const [sign, name] = /([&*])([\w-]+)(?= |$)/y.exec(line.slice(column))?.slice(1) ?? []
    if (sign === '*') return this.#alias(name ?? '', column)
    if (sign === undefined) return isItem ? this.#node(column, parent) : this.#value(column, parent)
    const before = this.#cost
    const from = this.#textFrom(column + 1 + (name ?? '').length)
    const value = from === undefined ? this.#blockBelow(parent, !isItem) : this.#value(from, parent)
    this.#anchors.set(name ?? '', { value, cost: this.#cost - before })
    return value
  }

  #alias(name: string, column: number): unknown {
    const known = this.#anchors.get(name)
    if (known === undefined || this.#textFrom(column + 1 + name.length) !== undefined) return giveUp()
    this.#cost += known.cost
    this.#next()
    this.#skip()
    return known.value
  }

  /** A key that begins here, and where its value may begin. */
  #keyAt(column: number): KeyAndRest | undefined {
    const line = this.#line
    const first = line[column]
    if (first === '"' || first === "'") {
      const quoted = this.#quotedInLine(column)
      if (quoted === undefined || line[quoted.end] !== ':' || !isOut(line[quoted.end + 1])) return undefined
      const { value, end } = quoted
      return value === '__proto__' || value.length > longestKey ? giveUp() : { key: value, from: end + 1 }
    }
    let colon = line.indexOf(':', column)
    while (colon !== -1 && !isOut(line[colon + 1])) colon = line.indexOf(':', colon + 1)
    if (colon === -1) return undefined
    const text = line.slice(column, colon)
    const isKey = beginsPlain(text) && !text.includes(' #') && !/\s$|\t/.test(text)
    return isKey ? { key: plainKey(text), from: colon + 1 } : giveUp()
  }

  /** A scalar, or an empty collection. */
  #value(column: number, parent: number): unknown {
    const text = this.#line.slice(column)
    switch (text[0]) {
      case '"':
      case "'":
        return this.#quoted(column, parent)
      case '|':
      case '>':
        return this.#blockScalar(text, parent)
      case '[':
      case '{': {
        const empty = text.trimEnd()
        if (empty !== '[]' && empty !== '{}') giveUp()
        this.#next()
        this.#skip()
        return empty === '[]' ? [] : {}
      }
      default:
        return this.#plain(text, parent)
    }
  }

  #plain(text: string, parent: number): unknown {
    if (!beginsPlain(text)) giveUp()
    const comment = text.indexOf(' #')
    const pieces = [(comment === -1 ? text : text.slice(0, comment)).trimEnd()]
    this.#next()
    for (let end = this.#continuedAt(parent); end !== undefined; end = this.#continuedAt(parent)) {
      if (comment !== -1) giveUp()
      for (; this.#at < end; this.#next()) pieces.push('')
      pieces.push(this.#line.trim())
      this.#next()
    }
    this.#skip()
    if (pieces.some((piece) => /\t|: | #|:$/.test(piece))) giveUp()
    return pieces.length === 1 ? plainValue(pieces[0] ?? '') : folded('scalar', pieces.join('\n'))
  }

  /** The next line of a plain scalar, behind empty ones. */
  #continuedAt(parent: number): number | undefined {
    let at = this.#at
    while (at < this.#lines.length && this.#lines[at]?.trim() === '') at += 1
    const line = this.#lines[at]
    if (line === undefined || this.#indent(line) <= parent || line.trimStart().startsWith('#'))
      return undefined
    return documentMark.test(line) ? giveUp() : at
  }

  #quotedInLine(column: number): QuotedEnd | undefined {
    const line = this.#line
    const mark = line[column] ?? ''
    const end = quoteEnd(line, column + 1, mark)
    return end === -1 ? undefined : { value: unquoted(line.slice(column, end), mark), end }
  }

  #quoted(column: number, parent: number): unknown {
    const mark = this.#line[column] ?? ''
    const one = this.#quotedInLine(column)
    let end = one?.end ?? -1
    const lines = [this.#line.slice(column)]
    while (end === -1) {
      this.#next()
      const line = this.#line
      if (this.#at >= this.#lines.length || (line.trim() !== '' && this.#indent() <= parent)) giveUp()
      if (documentMark.test(line)) giveUp()
      end = quoteEnd(line, 0, mark)
      lines.push(end === -1 ? line : line.slice(0, end))
    }
    if (this.#textFrom(end) !== undefined) giveUp()
    this.#next()
    this.#skip()
    return one?.value ?? unquoted(lines.join('\n'), mark)
  }

  /** The lines of a block scalar: those that are indented as its first one, and empty ones. */
  #passContent(parent: number, given: number | undefined): void {
    let column = given
    for (; this.#at < this.#lines.length; this.#next()) {
      const line = this.#line
      if (line === '') continue
      // Of lines of spaces some are content, and some end it.
      if (line.trim() === '') giveUp()
      const indent = this.#indent()
      if (indent > parent) column ??= indent
      if (column === undefined || indent < column) break
    }
    const isDeeper = this.#at < this.#lines.length && this.#indent() > parent
    if (column !== undefined && isDeeper) giveUp()
  }

  #blockScalar(text: string, parent: number): string {
    const header = text.trimEnd()
    const [, given] = /^[|>](?:[-+]|([1-9])[-+]?)?$/.exec(header) ?? giveUp()
    this.#next()
    const start = this.#at
    this.#passContent(parent, given === undefined ? undefined : Math.max(0, parent) + Number(given))
    const lines = this.#lines.slice(start, this.#at)
    // The last line of the text has no end.
    const isLast = this.#at >= this.#lines.length
    const source = isLast ? lines.join('\n') : lines.map((line) => `${line}\n`).join('')
    const props: CST.Token[] = [{ type: 'block-scalar-header', offset: 0, indent: 0, source: header }]
    const token: CST.BlockScalar = {
      type: 'block-scalar',
      offset: 0,
      indent: Math.max(0, parent),
      props,
      source,
    }
    this.#skip()
    return CST.resolveAsScalar(token, true, giveUp).value
  }
}

const folded = (type: CST.FlowScalar['type'], source: string): string =>
  CST.resolveAsScalar({ type, offset: 0, indent: 0, source }, true, giveUp).value

/** Behind the closing quotation mark; -1 when the text has none. */
const quoteEnd = (text: string, from: number, mark: string): number => {
  for (let at = from; at < text.length; at += 1) {
    const character = text[at]
    if (character === '\\' && mark === '"') at += 1
    else if (character === mark) {
      if (mark === '"' || text[at + 1] !== mark) return at + 1
      at += 1
    }
  }
  return -1
}

const unquoted = (source: string, mark: string): string => {
  const inner = source.slice(1, -1)
  if (source.includes('\n') || (mark === '"' && inner.includes('\\')))
    return folded(mark === '"' ? 'double-quoted-scalar' : 'single-quoted-scalar', source)
  return mark === '"' ? inner : inner.replaceAll("''", "'")
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that YAML does not have, and line ends that it reads as others
const unusual = /[\u0000-\u0008\u000b-\u001f\u007f\u0085\ufeff\ud800-\udfff]/u

/** The value of a text; undefined when it has another form, or a fault. */
export const readBlockYaml = (text: string): { readonly value: unknown } | undefined => {
  if (unusual.test(text)) return undefined
  try {
    return { value: new Reader(text).document() }
  } catch (error) {
    if (error instanceof OtherForm) return undefined
    throw error
  }
}
