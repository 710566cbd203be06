/**
 * The name under which PHP files a query or form parameter: leading spaces go, what stands behind a NUL is cut,
 * `.` and space become `_`, and so does an unclosed `[`; a closed one ends the name.
 */
export const foldPhpName = (name: string): string => {
  const cut = name.split('\0', 1)[0] ?? ''
  const trimmed = cut.replace(/^ +/, '')
  const bracket = trimmed.indexOf('[')
  const closed = bracket > 0 && trimmed.includes(']', bracket)
  const plain = closed ? trimmed.slice(0, bracket) : trimmed
  // Only the first unclosed bracket is folded, and the rest of the name then stays as it is.
  if (bracket > 0 && !closed) {
    return `${plain.slice(0, bracket).replace(/[. ]/g, '_')}_${plain.slice(bracket + 1)}`
  }
  return plain.replace(/[. ]/g, '_')
}
