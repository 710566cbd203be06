import { type ExtensionsMode, isExtended } from '../batch/extensions.ts'
import type { Endpoint } from '../contracts/row.ts'
import { extendedBatch } from '../contracts/site/batch-extensions.ts'
import type { Validator } from '../contracts/validation.ts'

/** Reads the content once more only when the word is in it. */
const asks = (mode: ExtensionsMode, content: Buffer | undefined): boolean => {
  if (mode !== 'on-request') return mode === 'on'
  if (content === undefined || !content.includes('"extensions"')) return false
  try {
    return isExtended(mode, JSON.parse(content.toString()))
  } catch {
    return false
  }
}

/** Checks a batch that asks for extensions against what such a batch may say, and all others as WordPress does. */
export const withBatchExtensions = (validator: Validator, mode: ExtensionsMode): Validator => {
  const extended = new WeakMap<Endpoint, Endpoint>()
  const extendedOf = (endpoint: Endpoint): Endpoint => {
    const known = extended.get(endpoint) ?? extendedBatch(endpoint)
    extended.set(endpoint, known)
    return known
  }
  return {
    validate: (input) =>
      input.row.kind === 'batch' && asks(mode, input.content)
        ? validator.validate({ ...input, endpoint: extendedOf(input.endpoint) })
        : validator.validate(input),
  }
}
