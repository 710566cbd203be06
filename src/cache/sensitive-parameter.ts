/** A query parameter that makes an answer unfit for sharing. */
export type SensitiveParameter = 'nonce' | 'password' | 'context-edit' | 'non-public-status'

/** As PHP folds names: leading spaces go, text behind a NUL or the first bracket goes, `.` and space become `_`. */
const foldedName = (name: string): string =>
  (name.split(/[[\0]/, 1)[0] ?? '').trimStart().replace(/[ .]/g, '_').toLowerCase()

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): SensitiveParameter | undefined => {
  switch (foldedName(name)) {
    case '_wpnonce':
      return 'nonce'
    case 'password':
      return 'password'
    case 'context':
      return value.trim().toLowerCase() === 'edit' ? 'context-edit' : undefined
    case 'status':
      return isPublicStatus(value) ? undefined : 'non-public-status'
    default:
      return undefined
  }
}

/** First sensitive parameter of a query (without `?`). Depends on the target alone: keep it with the memoised canonical form. */
export const sensitiveParameter = (query: string): SensitiveParameter | undefined => {
  if (query === '') return undefined
  for (const [name, value] of new URLSearchParams(query)) {
    const found = readParameter(name, value)
    if (found !== undefined) return found
  }
  return undefined
}
