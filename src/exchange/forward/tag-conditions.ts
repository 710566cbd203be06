import { withUncodedTags } from '../../http/conditional/preconditions.ts'
import { type RequestHeaders, requestHeader } from '../../http/headers/header-lines.ts'

/** Request headers that `ownConditions` replaces. */
export const tagConditions: ReadonlySet<string> = new Set(['if-match', 'if-none-match'])

export const hasTagCondition = (headers: RequestHeaders): boolean =>
  headers['if-none-match'] !== undefined || headers['if-match'] !== undefined

/** Entity tags of content codings are made by the gateway: the upstream cannot compare them, so its own tags are added. */
export const ownConditions = (headers: RequestHeaders): Readonly<Record<string, string>> => {
  const match = requestHeader(headers, 'if-match')
  const noneMatch = requestHeader(headers, 'if-none-match')
  return {
    ...(match === undefined ? {} : { 'if-match': withUncodedTags(match) }),
    ...(noneMatch === undefined ? {} : { 'if-none-match': withUncodedTags(noneMatch) }),
  }
}
