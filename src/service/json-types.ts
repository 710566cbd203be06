/** The types of JSON Schema. */
export const jsonTypes: ReadonlySet<unknown> = new Set(
  'string integer number boolean array object null'.split(' '),
)
