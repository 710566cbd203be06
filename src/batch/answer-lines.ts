import type { Part } from './answer.ts'
import type { BatchResult } from './events.ts'

/** In JSON a line end stands between tokens only (RFC 8259 §7), so a space may stand in its place. */
const onOneLine = (json: Buffer): Buffer => {
  if (!json.includes(10) && !json.includes(13)) return json
  const copy = Buffer.from(json)
  for (const [at, octet] of copy.entries()) if (octet === 10 || octet === 13) copy[at] = 32
  return copy
}

/** The line of one item; `part` is what stands in `responses` otherwise. */
export const itemLine = (index: number, part: Part): Buffer =>
  Buffer.concat([Buffer.from(`{"index":${index},"response":`), ...part.map(onOneLine), Buffer.from('}\n')])

/** The last line. An answer without it has been cut off. */
export const lastLine = (result: BatchResult, items: number): Buffer =>
  Buffer.from(`{"end":{"result":${JSON.stringify(result)},"items":${items}}}\n`)
