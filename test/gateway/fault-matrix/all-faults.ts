import { connectionFaults } from './connection-faults.ts'
import { contentFaults } from './content-faults.ts'
import type { Fault } from './fault.ts'
import { headFaults } from './head-faults.ts'
import { responseFaults } from './response-faults.ts'

/** Every row of the matrix, in the order of the document. */
export const sections: readonly (readonly [title: string, faults: readonly Fault[]])[] = [
  ['The connection', connectionFaults],
  ['The head', headFaults],
  ['The content', contentFaults],
  ['The answer', responseFaults],
]

export const allFaults: readonly Fault[] = sections.flatMap(([, faults]) => faults)
