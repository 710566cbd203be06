import { foldPhpName } from '../http/php-names.ts'

/** A query parameter that makes an answer unfit for sharing. */
export type SensitiveParameter = 'nonce' | 'password' | 'context-edit' | 'non-public-status'

const isPublicStatus = (value: string): boolean =>
  value
    .toLowerCase()
    .split(/[\s,]+/)
    .every((status) => status === '' || status === 'publish' || status === 'inherit')

const readParameter = (name: string, value: string): SensitiveParameter | undefined => {
  // In lower case: a service that is not PHP may not tell cases apart.
  switch (foldPhpName(name).toLowerCase()) {
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
