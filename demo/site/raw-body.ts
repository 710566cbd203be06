import { requestHeader } from '../../src/http/headers/header-lines.ts'
import type { Call, Values } from './call.ts'

/** Parameters of a form or JSON body, unchanged: for code that needs some that the contract does not list. */
export const rawBody = (call: Call): Values => {
  const type = requestHeader(call.fields, 'content-type') ?? ''
  if (call.content.length === 0) return {}
  if (type.startsWith('application/x-www-form-urlencoded')) {
    return Object.fromEntries(new URLSearchParams(call.content.toString('utf8')))
  }
  if (!/^application\/(?:[a-z0-9.-]{1,60}\+)?json/i.test(type)) return {}
  try {
    const body: unknown = JSON.parse(call.content.toString('utf8'))
    return body !== null && typeof body === 'object' && !Array.isArray(body) ? (body as Values) : {}
  } catch {
    // The validator has already refused broken JSON wherever a body counts.
    return {}
  }
}
