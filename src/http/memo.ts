import { shortText } from './retained.ts'

/** Longer texts are rare, and a flood of them would hold much memory. */
const longest = 256

/** A bounded memory of values by text. Two generations stand in for an order of use: what is read moves to the young one. */
export const createRecentValues = <Value>(maxValues: number) => {
  const perHalf = Math.ceil(maxValues / 2)
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  const set = (text: string, value: Value): void => {
    if (young.size >= perHalf) {
      old = young
      young = new Map()
    }
    young.set(text, value)
  }
  return {
    get: (text: string): Value | undefined => {
      const recent = young.get(text)
      if (recent !== undefined) return recent
      const aged = old.get(text)
      if (aged !== undefined) set(text, aged)
      return aged
    },
    set,
    clear: (): void => {
      young = new Map()
      old = new Map()
    },
  }
}

/**
 * The last number that each text got. Bounded in texts and in their length, which clients choose: for the texts that were dropped
 * counts the highest of their numbers.
 */
export const createLastNumbers = (maxTexts: number) => {
  const last = new Map<string, number>()
  let floor = 0
  const setAll = (number: number): void => {
    floor = Math.max(floor, number)
  }
  return {
    set: (long: string, number: number): void => {
      const text = shortText(long)
      if ((last.get(text) ?? 0) > number) return
      // Deleted first, so that the map is in the order of the numbers.
      last.delete(text)
      last.set(text, number)
      if (last.size <= maxTexts) return
      const [oldest, at] = last.entries().next().value as [string, number]
      last.delete(oldest)
      setAll(at)
    },
    /** Every text has this number or a higher one. */
    setAll,
    /** Forgets all numbers: every text has this one. */
    restart: (number: number): void => {
      last.clear()
      floor = number
    },
    /** The number of a text, or the highest one that it may have. */
    of: (text: string): number => Math.max(floor, last.get(shortText(text)) ?? 0),
    /** Has any of the texts a higher number, or may it have one? */
    isAfter: (texts: readonly string[], number: number): boolean =>
      floor > number || texts.some((long) => (last.get(shortText(long)) ?? 0) > number),
  }
}

/**
 * The same function of a text, with its results for the last different texts: headers of responses often repeat. For functions of
 * nothing but the text, whose results are never changed. A flood of new texts costs a second reading and no more.
 */
export const memoize = <Result>(
  read: (text: string) => Result,
  perHalf = 256,
  maxLength = longest,
): ((text: string) => Result) => {
  const recent = createRecentValues<{ readonly result: Result }>(2 * perHalf)
  return (text) => {
    const entry = recent.get(text)
    if (entry !== undefined) return entry.result
    const result = read(text)
    if (text.length <= maxLength) recent.set(text, { result })
    return result
  }
}

/** The same function of a text, with its result for the last text, of any length: a request asks for the same one again and again. */
export const memoizeLast = <Result extends object>(
  read: (text: string) => Result,
): ((text: string) => Result) => {
  let last: { readonly text: string; readonly result: Result } | undefined
  return (text) => {
    if (last?.text !== text) last = { text, result: read(text) }
    return last.result
  }
}

/** The same function of an object, with its result for as long as the object exists. For objects that are never changed. */
export const memoizeByObject = <Key extends object, Result extends object>(
  read: (key: Key) => Result,
): ((key: Key) => Result) => {
  const results = new WeakMap<Key, Result>()
  return (key) => {
    let result = results.get(key)
    if (result === undefined) {
      result = read(key)
      results.set(key, result)
    }
    return result
  }
}
