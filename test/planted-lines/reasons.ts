/** By the line: why its fault has no effect that a test should find. */
export const reasons: Readonly<Record<string, string>> = {
  'if (targets.length > 4 * limit) targets.splice(0, targets.length, ...topTargets(targets, limit))':
    'the list is cut to the same first ones at its end: only more memory is used before',
  'return (status === 404 || status === 410) && rule.negativeTtlMs > 0':
    'a negative lifetime of exactly one millisecond',
  'for (let pieces = 0; reader.isWaiting && pieces < piecesPerTurn; pieces += 1) {':
    'fewer pieces for one reader in a turn: the reader gets the same',
  'const owner = path === service.mount + target ? service : snapshot.serviceAt(authority, path)':
    'a short cut: the table of services finds the same service',
  "if (!text.startsWith('\"')) return text.split(/[,;]/, 1)[0]": 'only the first part is used',
  'const tail = fixed.reduce((sum, quantifier) => sum + Number(quantifier.slice(1, -1) || 1), 0)':
    'which of two matchers with the same result takes a pattern',
  'a.name < b.name ? -1 : a.name > b.name ? 1 : 0': 'only the sign of a comparison counts',
  'const documentMemoBytes = 8 * 1024 * 1024': 'a bound of memory that is a thousandth higher',
  'nameOf(one) < nameOf(other) ? -1 : 1': 'a document with two operations of one name is not given a key',
}
