import type { Section } from './dashboard.ts'
import { lines } from './panel.ts'
import { quantile, rate, series, total } from './query.ts'

/** Several processes that keep one promise: of interest with workers or a shared store. */
export const sharedMemory: Section = {
  title: 'Several processes',
  panels: [
    lines({
      title: 'Processes that serve from memory',
      description: 'The other processes fetch everything from the upstream until they have contact again.',
      unit: 'short',
      queries: [[total(series('memoryTrusted'), ['instance']), '{{instance}}']],
    }),
    lines({
      title: 'Contact lost, cache dropped',
      description:
        'Times a process lost contact with the others, and times it dropped its cache because of that.',
      unit: 'ops',
      queries: [
        [rate(series('trustLost'), ['reason']), 'lost: {{reason}}'],
        [rate(series('memoryDropped')), 'dropped'],
      ],
    }),
    lines({
      title: 'Wait of writes for other processes',
      description: 'Time until the other processes have acknowledged a write, 99 %, by outcome.',
      unit: 's',
      queries: [[quantile(0.99, 'writeBroadcast', ['outcome']), '{{outcome}}']],
    }),
    lines({
      title: 'Redis lookups',
      description: 'Lookups in Redis after a memory miss, by result.',
      unit: 'ops',
      queries: [
        [rate(series('sharedLookups'), ['outcome']), '{{outcome}}'],
        [rate(series('sharedWaits'), ['outcome']), 'wait for another instance: {{outcome}}'],
        [rate(series('sharedRefused'), ['reason']), 'refused: {{reason}}'],
      ],
    }),
    lines({
      title: 'Redis, stored',
      description: 'Bytes written to Redis.',
      unit: 'Bps',
      queries: [[rate(series('sharedStoredBytes')), 'bytes']],
    }),
    lines({
      title: 'Messages and failures',
      description: 'Invalidations received, responses written to Redis, and failures.',
      unit: 'ops',
      queries: [
        [rate(series('invalidationsApplied')), 'invalidations received'],
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
