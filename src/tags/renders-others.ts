import { staticBlocks, staticClasses, staticElements } from '../contracts/site/static-content.ts'

/** A quotation mark, as it stands in HTML inside JSON. */
const quote = '(?:\\\\?["\'])'
/** White space, likewise. */
const space = '(?:\\s|\\\\[nrt])'

const foreignElement = `<(?!\\\\?/|(?:${staticElements.join('|')})(?![\\w:-])|!--${space}*\\\\?/?wp:(?:${staticBlocks.join('|')})${space}|!--(?:more|nextpage|noteaser)-->)`

/** A class attribute in which a class stands that no static block has. */
const foreignClass = (more: readonly string[]): string => {
  const known = `(?:${[...staticClasses, ...more].join('|')})`
  return `class${space}*=(?!${quote}${space}*(?:${known}(?:${space}+|(?=${quote})))*${quote})`
}

/** Scripts find elements by these. */
const foreignAttribute = `(?:[\\s"']|\\\\[nrt])(?:id|on\\w+|data-[\\w-]+)${space}*=${space}*${quote}`

/** The templates of PHP indent with tabs, among them classic widgets that have no class; editors write none. */
const tab = '\\\\t'

/** HTML that is hidden from all of these. */
const hidden = '\\\\u00(?:3c|22|27)'

const patternFor = (more: readonly string[]): RegExp =>
  new RegExp([foreignElement, foreignClass(more), foreignAttribute, tab, hidden].join('|'), 'i')

/** Makes what tells whether content in an answer may render other things, `more` being classes that do not say so. */
export const createRendersOthers = (more: readonly string[] = []): ((text: string) => boolean) => {
  const pattern = patternFor(more)
  return (text) => pattern.test(text)
}
