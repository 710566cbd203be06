import type { Config, OpenApiConfig } from '../config/config.ts'
import { sameSettings } from '../config/same-settings.ts'
import { headersThatCorsLacks } from '../config/warnings.ts'
import { apiDocumentOf } from './document/api-document.ts'
import type { ApiContract } from './document/load-document.ts'

/** Pages may send these without permission (Fetch standard, CORS-safelisted request-header). */
const safelisted: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-language', 'range'])

/** Declared request headers that pages of other origins cannot send. */
const corsHints = (cors: Config['cors'], { operations, keyHeaders }: ApiContract): readonly string[] => {
  const parameters = operations.flatMap((operation) => operation.parameters)
  const headers = parameters.filter(({ location }) => location === 'header').map(({ name }) => name)
  const headerNames = new Set([...keyHeaders, ...headers])
  const missingHeaders = headersThatCorsLacks(
    cors,
    [...headerNames].filter((name) => !safelisted.has(name)),
  )
  if (missingHeaders.length === 0) return []
  const suffix = missingHeaders.length > maxNames ? `, and ${missingHeaders.length - maxNames} more` : ''
  const names = missingHeaders.slice(0, maxNames).join(', ')
  return [`pages of other origins cannot send declared headers that cors.headers lacks: ${names}${suffix}`]
}

/** What of the documents is accepted but not checked, or not in full; and what browsers cannot send to them. */
export const documentHints = async (
  config: Config,
): Promise<readonly { readonly service: string; readonly text: string }[]> => {
  const hints = config.services.map(async (service) => {
    if (service.contract !== 'openapi') return []
    const document = apiDocumentOf(service)
    const { placedHints } = await import('./document/read-document.ts')
    const { uncheckedSchemas } = await import('./requests/openapi-requests.ts')
    const texts = [
      ...(await placedHints(document)),
      ...uncheckedSchemas(document.contract),
      ...corsHints(service.cors, document.contract),
    ]
    return texts.map((text) => ({ service: service.name, text }))
  })
  return (await Promise.all(hints)).flat()
}

const maxNames = 20

const operationTexts = ({ document }: OpenApiConfig): ReadonlySet<string> =>
  new Set(document.contract.operations.map(({ method, template }) => `${method} ${template}`))

/** The operations that new documents have and old ones had not, and the reverse, for the log line of a reload: some with `+` and `-`. */
export const documentChanges = (last: Config, next: Config) =>
  next.services.flatMap((service) => {
    const before = last.services.find(({ name }) => name === service.name)
    if (service.contract !== 'openapi' || before?.contract !== 'openapi') return []
    if (sameSettings(service.document, before.document)) return []
    const [old, now] = [operationTexts(before), operationTexts(service)]
    const added = [...now].filter((text) => !old.has(text))
    const removed = [...old].filter((text) => !now.has(text))
    const operations = [...added.map((text) => `+ ${text}`), ...removed.map((text) => `- ${text}`)]
    const counts = { added: added.length, removed: removed.length }
    return [{ service: service.name, ...counts, operations: operations.slice(0, maxNames) }]
  })
