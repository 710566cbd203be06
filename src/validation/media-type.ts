/** What a content type means for reading parameters. */
export type MediaType = 'json' | 'form' | 'other'

const json = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json$/

/**
 * Type and subtype decide; parameters such as charset do not (RFC 9110 §8.3.1). `application/problem+json` is JSON too (RFC
 * 6839 §3.1).
 */
export const mediaTypeOf = (contentType: string | undefined): MediaType => {
  if (contentType === undefined || contentType.length > 256) return 'other'
  const semicolon = contentType.indexOf(';')
  const value = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
  if (value === 'application/x-www-form-urlencoded') return 'form'
  return json.test(value) ? 'json' : 'other'
}
