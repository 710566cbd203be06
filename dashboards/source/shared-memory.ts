import type { Section } from './dashboard.ts'
import { lines } from './panel.ts'
import { quantile, rate, series, total } from './query.ts'

/** Several processes that keep one promise: of interest with workers or a shared store. */
export const sharedMemory: Section = {
  title: 'Several processes',
  panels: [
    lines({
      title: 'Trusted memory',
      description:
        'Processes that may answer from memory; the others ask their upstreams until they hear of writes again.',
      unit: 'short',
      queries: [[total(series('memoryTrusted'), ['instance']), '{{instance}}']],
    }),
    lines({
      title: 'Trust lost, memory dropped',
      description:
        'How often a process could not hear of writes, and how often it dropped all that it had stored for that.',
      unit: 'ops',
      queries: [
        [rate(series('trustLost'), ['reason']), 'lost: {{reason}}'],
        [rate(series('memoryDropped')), 'dropped'],
      ],
    }),
    lines({
      title: 'What a write waits for',
      description: 'Until the other processes know of it, 99 %, by how the wait ended.',
      unit: 's',
      queries: [[quantile(0.99, 'writeSpread', ['outcome']), '{{outcome}}']],
    }),
    lines({
      title: 'Second tier',
      description: 'Reads that memory could not answer, by what the shared store had.',
      unit: 'ops',
      queries: [
        [rate(series('sharedLookups'), ['outcome']), '{{outcome}}'],
        [rate(series('sharedWaits'), ['outcome']), 'wait for another instance: {{outcome}}'],
        [rate(series('sharedRefused'), ['reason']), 'refused: {{reason}}'],
      ],
    }),
    lines({
      title: 'Second tier, stored',
      description: 'Bytes put into the shared store.',
      unit: 'Bps',
      queries: [[rate(series('sharedStoredBytes')), 'bytes']],
    }),
    lines({
      title: 'Messages',
      description: 'Notes of writes carried out, responses put into the second tier, and what failed.',
      unit: 'ops',
      queries: [
        [rate(series('notesApplied')), 'notes carried out'],
        [rate(series('sharedStored')), 'responses stored'],
        [rate(series('ledgerFailures'), ['step']), 'ledger failed: {{step}}'],
        [rate(series('writesRefused')), 'writes refused, unheard'],
        [rate(series('sharedFailures'), ['step']), 'store failed: {{step}}'],
        [rate(series('sharedTroubles'), ['trouble']), 'store said: {{trouble}}'],
        [rate(series('sharedConnectionLosses')), 'connection lost'],
      ],
    }),
  ],
}
