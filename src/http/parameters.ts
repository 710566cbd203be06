/** Where the next parameter of a query or form begins; its length where there is none. Empty ones are passed over. */
export const parameterStart = (text: string, from: number): number => {
  let at = from
  // One by one: a search for the end of each would be a million of them in a content of nothing else.
  while (text[at] === '&') at += 1
  return at
}

/** Where the parameter ends that begins there. */
export const parameterEnd = (text: string, start: number): number => {
  const ampersand = text.indexOf('&', start)
  return ampersand < 0 ? text.length : ampersand
}
