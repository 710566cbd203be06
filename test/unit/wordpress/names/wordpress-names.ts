import {
  keyNames,
  type NameTable,
  namespaceNames,
  segmentNames,
} from '../../../../src/wordpress/names/name-table.ts'
import { createNames, type Names, type NamesOptions } from '../../../../src/wordpress/names/names.ts'

export const publicRoot = 'http://gateway.test/index.php/site-json'
export const upstreamRoot = 'http://wordpress.test/index.php/wp-json'

export const table: NameTable = { namespaces: namespaceNames, keys: keyNames, segments: segmentNames }

export const names = (changed: Partial<NamesOptions> = {}): Names =>
  createNames({
    mode: 'wordpress',
    table,
    publicRoot,
    learned: { root: undefined },
    upstreamRoots: () => [upstreamRoot],
    ...changed,
  })

export const jsonHeaders = ['Content-Type', 'application/json; charset=UTF-8']

/** The content as the public side sees it, cut into chunks after each of the given positions. */
export const fromUpstream = (mapper: Names, content: Buffer, cuts: readonly number[] = []): Buffer => {
  const scanner = mapper.fromUpstream(jsonHeaders).mapper?.scanner()
  if (scanner === undefined) return content
  const ends = [...cuts, content.length].sort((a, b) => a - b)
  const pieces: Buffer[] = []
  let from = 0
  for (const end of ends) {
    pieces.push(scanner.push(content.subarray(from, end)))
    from = end
  }
  return Buffer.concat([...pieces, scanner.end()])
}
