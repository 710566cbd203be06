import type { RouteFinding } from '../../../src/service/row.ts'

/** A finding in one line, for tables: what was found, and the path that is keyed and sent. */
export const inOneLine = (finding: RouteFinding): string => {
  switch (finding.kind) {
    case 'found':
      return `${finding.row.id} ${finding.path}`
    case 'refused':
      return `refused: ${finding.reason}`
    case 'unlisted':
      return `unlisted ${finding.path}`
    default:
      return `${finding.kind} ${finding.row.id} ${finding.path}`
  }
}
