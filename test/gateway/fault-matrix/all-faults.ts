import { answerFaults } from './answer-faults.ts'
import { connectionFaults } from './connection-faults.ts'
import { contentFaults } from './content-faults.ts'
import type { Fault } from './fault.ts'
import { headFaults } from './head-faults.ts'

/** Every row of the matrix, in the order of the document. */
export const sections: readonly (readonly [title: string, faults: readonly Fault[]])[] = [
  ['The connection', connectionFaults],
  ['The head', headFaults],
  ['The content', contentFaults],
  ['The answer', answerFaults],
]

export const allFaults: readonly Fault[] = sections.flatMap(([, faults]) => faults)
