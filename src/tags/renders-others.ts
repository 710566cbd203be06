import { staticBlocks, staticClasses, staticElements } from '../contracts/site/static-content.ts'

/** A quotation mark, as it stands in HTML inside JSON. */
const quote = '(?:\\\\?["\'])'
/** White space, likewise. */
const space = '(?:\\s|\\\\[nrt])'

const foreignElement = (more: readonly string[]): string =>
  `<(?!\\\\?/|(?:${staticElements.join('|')})(?![\\w:-])|!--${space}*\\\\?/?wp:(?:${[...staticBlocks, ...more].join('|')})${space}|!--(?:more|nextpage|noteaser)-->)`

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

/** Classes and blocks that are no reason to think so. */
type Plain = { readonly classes?: readonly string[]; readonly blocks?: readonly string[] }

/** Makes what tells whether content in an answer may render other things than are made of `plain`. */
export const createRendersOthers = ({
  classes = [],
  blocks = [],
}: Plain = {}): ((text: string) => boolean) => {
  const signs = [foreignElement(blocks), foreignClass(classes), foreignAttribute, tab, hidden]
  const pattern = new RegExp(signs.join('|'), 'i')
  return (text) => pattern.test(text)
}
