/** Tells whether a name is on a list of names and `prefix*` patterns. */
export const trackingMatcher = (names: readonly string[]): ((name: string) => boolean) => {
  const exact = new Set(names.filter((name) => !name.endsWith('*')))
  const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  return (name) => exact.has(name) || prefixes.some((prefix) => name.startsWith(prefix))
}
