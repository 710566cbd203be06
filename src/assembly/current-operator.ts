import type { Operator, ReloadAnswer } from '../admin/operator.ts'
import type { ReloadOutcome } from '../lifecycle/reload-outcome.ts'

/** What depends on the configuration in force. */
export type GenerationOperator = Omit<Operator, 'reload' | 'drain'>

const reloadAnswer = (outcome: ReloadOutcome): ReloadAnswer => {
  switch (outcome.kind) {
    case 'applied':
    case 'unchanged':
      return { kind: 'done', outcome: outcome.kind, hash: outcome.hash }
    case 'invalid':
      return { kind: 'refused', outcome: outcome.kind, details: outcome.faults }
    case 'restart-needed':
      return { kind: 'refused', outcome: outcome.kind, details: outcome.keys }
    case 'failed':
      return { kind: 'refused', outcome: outcome.kind, details: [] }
  }
}

/** What the admin side shows and does, always by the configuration in force. */
export const currentOperator = (
  current: () => GenerationOperator,
  reload: () => Promise<ReloadOutcome>,
  drain: () => void,
): Operator => ({
  purge: (request) => current().purge(request),
  entries: (query) => current().entries(query),
  explain: (request) => current().explain(request),
  drift: () => current().drift(),
  config: () => current().config(),
  openApi: () => current().openApi(),
  reload: async () => reloadAnswer(await reload()),
  drain,
})
