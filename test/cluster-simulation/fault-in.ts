import type { ProtocolFault } from './bundle.ts'

/** Makes faults of one file of src. */
export const faultIn =
  (file: string) =>
  (name: string, right: string, wrong = ''): ProtocolFault => ({ name, file: `src/${file}`, right, wrong })
