import type { RouteMatch } from '../../../../src/service/row.ts'

/** An issue in one line, for tables: what was found, and the path that is keyed and sent. */
export const inOneLine = (routeMatch: RouteMatch): string => {
  switch (routeMatch.kind) {
    case 'found':
      return `${routeMatch.row.id} ${routeMatch.path}`
    case 'refused':
      return `refused: ${routeMatch.reason}`
    case 'unlisted':
      return `unlisted ${routeMatch.path}`
    default:
      return `${routeMatch.kind} ${routeMatch.row.id} ${routeMatch.path}`
  }
}
