import type { Readable } from 'node:stream'
import type { Reservation } from '../http/byte-budget.ts'
import { fieldValue, withoutFields } from '../http/fields.ts'
import type { GatewayResponse } from '../http/message.ts'
import { isCodable } from './codable.ts'
import { Fill } from './fill.ts'
import { declaredLength } from './read-content.ts'
import { type StoredResponse, withVaryByCoding } from './stored-response.ts'

/** A content up to this length is read whole before anybody gets it: it is there at once, and its entity tag with it. */
const heldBackBytes = 65_536

/** So long one slow reader may hold up others who read the same content, where that is not kept. */
const patienceMs = 10_000

const noContent = Buffer.alloc(0)

/** Follows a content that did not arrive in one piece; `end` undefined: it is long, and has only begun. */
export const beginFill = async (
  response: GatewayResponse,
  source: Readable,
  maxBytes: number,
  room: Reservation,
) => {
  const declared = declaredLength(response)
  const fill = new Fill({ source, declared, maxBytes, patienceMs, room })
  const isLong = declared !== undefined && declared > heldBackBytes
  const end = isLong ? undefined : await fill.begun(Math.min(heldBackBytes, maxBytes))
  return { fill, end: fill.overflowed ? ({ kind: 'overflowed' } as const) : end }
}

/**
 * What can be said of a response before its content has come, made of its record without content: no entity tag of our
 * own, and the length only where the upstream said it.
 */
export const sketchOf = (
  made: StoredResponse,
  response: GatewayResponse,
  codedFrom: number,
): StoredResponse => {
  const ownTag = fieldValue(response.fields, 'etag') === undefined
  const fields = withoutFields(made.fields, new Set(ownTag ? ['content-length', 'etag'] : ['content-length']))
  const declared = declaredLength(response)
  if (declared !== undefined) fields.push('Content-Length', String(declared))
  const tagged = { status: made.status, fields: made.fields }
  const codable = isCodable(tagged, declared ?? Number.MAX_SAFE_INTEGER, codedFrom)
  return { ...made, fields: codable ? withVaryByCoding(fields) : fields, content: noContent }
}
