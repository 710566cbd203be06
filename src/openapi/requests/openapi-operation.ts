import { hasBearer } from '../../http/headers/credential-headers.ts'
import { type RequestHeaders, requestHeader } from '../../http/headers/header-lines.ts'
import type { BodyContent, Operation, SecurityScheme } from '../document/operation.ts'
import { cookiePairs, pairsOf } from './parameter-text.ts'

/** Presence and shape of the credentials that an operation takes; whether they are valid, only the upstream decides. */
const isPresent = (scheme: SecurityScheme, fields: RequestHeaders, query: string): boolean => {
  const authorization = requestHeader(fields, 'authorization') ?? ''
  switch (scheme.kind) {
    case 'bearer':
      return hasBearer(fields)
    case 'http':
      return scheme.scheme === 'bearer'
        ? hasBearer(fields)
        : authorization.toLowerCase().startsWith(`${scheme.scheme} `)
    case 'apiKey': {
      const { location, name } = scheme
      if (location === 'header') return (requestHeader(fields, name) ?? '') !== ''
      const pairs =
        location === 'query' ? (pairsOf(query) ?? []) : cookiePairs(requestHeader(fields, 'cookie'))
      return pairs.some((pair) => pair.name === name && (pair.value ?? '') !== '')
    }
    case 'unseen':
      return true
  }
}

const challengeOf = (scheme: SecurityScheme | undefined): string => {
  if (scheme?.kind === 'http' && /^[a-z\d-]{1,32}$/.test(scheme.scheme))
    return scheme.scheme.charAt(0).toUpperCase() + scheme.scheme.slice(1)
  return scheme?.kind === 'apiKey' ? 'ApiKey' : 'Bearer'
}

/** The challenge for a request without the credentials that its operation needs; undefined when it has them, or needs none. */
export const missingCredential = (
  { security }: Operation,
  fields: RequestHeaders,
  query: string,
): string | undefined => {
  const isMet = (schemes: readonly SecurityScheme[]): boolean =>
    schemes.every((scheme) => isPresent(scheme, fields, query))
  return security.length === 0 || security.some(isMet) ? undefined : challengeOf(security[0]?.[0])
}

/** The description of a body with this media type, exact types before ranges. */
export const contentFor = (
  operation: Operation,
  contentType: string | undefined,
): BodyContent | undefined => {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return operation.body?.contents.find(({ mediaType }) => {
    if (mediaType === type || mediaType === '*/*' || mediaType === '*') return true
    return mediaType.endsWith('/*') && type.startsWith(mediaType.slice(0, -1)) && type.includes('/')
  })
}
