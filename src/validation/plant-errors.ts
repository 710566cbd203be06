import type { Validation } from '../contracts/validation.ts'

/** Why a plant request is refused: closed, because it labels metrics. */
const refusals = {
  invalid_json: [400, 'The body is not valid JSON.'],
  not_an_object: [400, 'The body must be a JSON object.'],
  repeated_member: [400, 'A member of the object occurs more than once.'],
  invalid_name: [400, 'name is required and must be a string.'],
  invalid_id: [400, 'id is required and must be a 64-bit integer in decimal digits.'],
  invalid_tag: [400, 'tag must be a string.'],
  invalid_path_id: [400, 'The id in the path must be a 64-bit integer in decimal digits.'],
  invalid_limit: [400, 'The limit must be one integer of at least 1.'],
  unreadable_query: [400, 'The query is not UTF-8.'],
  too_many_parameters: [400, 'The query has more parameters than allowed.'],
  unsupported_content_type: [415, 'The content type must be application/json.'],
} as const satisfies Record<string, readonly [number, string]>

/** Name of a refusal. */
export type PlantFault = keyof typeof refusals

/** The refusal in the plant store's shape; `error` repeats the status, because the contract lists no codes of its own. */
export const refusePlant = (fault: PlantFault): Extract<Validation, { kind: 'invalid' }> => {
  const [status, message] = refusals[fault]
  return { kind: 'invalid', status, code: fault, body: { error: status, message } }
}
