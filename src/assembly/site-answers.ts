import type { Discovery } from '../discovery/discovery.ts'
import type { DiscoveryDocument } from '../discovery/discovery-answer.ts'
import { GatewayError } from '../errors.ts'
import type { Answer, GatewayResponse } from '../http/message.ts'
import type { LocalAnswers } from '../pipeline/service.ts'
import { type BatchAnswersOptions, batchAnswers } from './batch-answers.ts'

const asResponse = ({ fields, content }: DiscoveryDocument): GatewayResponse => ({
  kind: 'response',
  status: 200,
  fields: [...fields, 'Content-Length', String(content.length)],
  content,
})

/** The schema that only the upstream knows, or what the table says when the upstream says nothing. */
const askedOptions = async (ask: () => Answer, fallback: DiscoveryDocument): Promise<GatewayResponse> => {
  try {
    const outcome = await ask()
    if (outcome.kind === 'response' && outcome.status === 200) return outcome
    if (outcome.kind === 'response' && outcome.content !== undefined && !Buffer.isBuffer(outcome.content)) {
      outcome.content.destroy()
    }
  } catch (error) {
    if (!(error instanceof GatewayError) || error.facts.fault === 'client') throw error
  }
  return asResponse(fallback)
}

export type SiteAnswersOptions = BatchAnswersOptions & {
  readonly discovery: Discovery
  /** Is what was read from the upstream before still known to be true? */
  mayRemember(): boolean
}

/** Writes to these, and to what no row lists, can change the site's identity or its routes. */
const describedBy: ReadonlySet<string> = new Set(['settings', 'plugins', 'themes', ''])

/** What the gateway answers itself for a site: its documents, and the batch. */
export const siteAnswers = (options: SiteAnswersOptions): LocalAnswers => {
  const { discovery } = options
  return {
    index: async (exchange, row) => {
      const { query } = exchange
      if (!options.mayRemember()) discovery.invalidate()
      const answer =
        row.namespace === ''
          ? await discovery.index(query)
          : await discovery.namespaceIndex(row.namespace, query)
      switch (answer.kind) {
        case 'document':
          return asResponse(answer)
        case 'identity-unknown':
          throw new GatewayError('upstream_unreachable', {
            detail: "The site's own index has not been read yet.",
            retryAfterSeconds: 5,
          })
        case 'unknown-namespace':
          throw new GatewayError('no_route')
      }
    },
    written: (collection) => {
      if (describedBy.has(collection)) discovery.invalidate()
    },
    options: (row, ask) => {
      const answer = discovery.options(row)
      return answer.kind === 'document' ? asResponse(answer) : askedOptions(ask, answer.fallback)
    },
    batch: batchAnswers(options),
  }
}
