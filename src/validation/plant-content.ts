import { int64Of } from './int64.ts'
import { readJson } from './json-content.ts'
import { holds, memberOf } from './php-array.ts'
import type { PlantFault } from './plant-errors.ts'
import { topLevelMembers } from './top-level-members.ts'

/** A plant to be created, or what is wrong with it. `id` is decimal text, exact over all 64 bits. */
export type PlantReading =
  | { readonly kind: 'plant'; readonly name: string; readonly id: string; readonly tag: string | undefined }
  | { readonly kind: 'refused'; readonly fault: PlantFault }

const refused = (fault: PlantFault): PlantReading => ({ kind: 'refused', fault })

const readMembers = (object: object, text: string): PlantReading => {
  const members = topLevelMembers(text)
  // Readers differ on which of two equal names counts (RFC 8259 §4): one could check what another does not store.
  if (new Set(members.map((member) => member.name)).size < members.length) return refused('repeated_member')
  const given = (member: string): unknown => (holds(object, member) ? memberOf(object, member) : undefined)
  const name = given('name')
  if (typeof name !== 'string') return refused('invalid_name')
  // From the source text: a parsed number beyond 2^53 would be another plant.
  const id = int64Of(members.find((member) => member.name === 'id')?.source ?? '')
  if (id === undefined) return refused('invalid_id')
  const tag = given('tag')
  if (tag !== undefined && typeof tag !== 'string') return refused('invalid_tag')
  return { kind: 'plant', name, id: String(id), tag }
}

/** Reads the content of a creation. Further members are the upstream's business. */
export const readPlant = (content: Buffer, maxDepth: number): PlantReading => {
  const reading = readJson(content, maxDepth)
  if (reading.kind !== 'read') return refused('invalid_json')
  const { value } = reading
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refused('not_an_object')
  return readMembers(value, content.toString('utf8'))
}
