import type { MemoryLedger } from './memory-ledger.ts'
import type { LedgerAnswer, LedgerCall } from './messages.ts'

/** Carries out at the parent's ledger what a worker asks of it. */
export const answerCall = (ledger: MemoryLedger, member: string, call: LedgerCall): LedgerAnswer => {
  switch (call.name) {
    case 'sync':
      return ledger.sync(member, call.position)
    case 'append':
      return ledger.append(member, call.notes, call.settled)
    case 'begin':
      ledger.begin(member, call.write, call.notes)
      return null
  }
}
