import {
  type BareItem,
  type InnerList,
  type Item,
  ParseError,
  parseDictionary,
  parseList,
} from 'structured-headers'

/** A text that does not parse as a whole counts as absent (RFC 9651 §4.2). */
const unlessInvalid =
  <Result>(parse: (text: string) => Result) =>
  (text: string): Result | undefined => {
    try {
      return parse(text)
    } catch (error) {
      if (error instanceof ParseError) return undefined
      throw error
    }
  }

export type Member = Item | InnerList

export const readDictionary = unlessInvalid(parseDictionary)
export const readList = unlessInvalid(parseList)

/** Undefined for an inner list. Parameters do not count. */
export const bareItem = ([item]: Member): BareItem | undefined => (Array.isArray(item) ? undefined : item)
