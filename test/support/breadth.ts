/**
 * How much of each long table runs. `npm run test:all`, and with it CI, runs a part that is always the same;
 * `npm run check` and `npm run nightly` set TRELLIS_TESTS=all and run every row.
 */
export const isAll = process.env['TRELLIS_TESTS'] === 'all'

/** How often something is tried: `part` times, or `all`. */
export const times = (part: number, all: number): number => (isAll ? all : part)

/** Every `nth` row and those that are `needed`, in their order; or every row. */
export const rowsOf = <Row>(
  rows: readonly Row[],
  nth: number,
  needed: (row: Row) => boolean = () => false,
): readonly Row[] => (isAll ? rows : rows.filter((row, at) => at % nth === 0 || needed(row)))
