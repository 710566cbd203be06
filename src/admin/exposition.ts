/** One line of a scrape. */
export type Sample = { readonly labels: Readonly<Record<string, string>>; readonly value: number }

/** Braces may stand inside a quoted value; what follows the value (a time, an exemplar) is not read. */
const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})? (\S+)/
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g
const escapes: Readonly<Record<string, string>> = { n: '\n' }

const labelsOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(label)].map(([, name = '', value = '']) => [
      name,
      value.replace(/\\(.)/g, (_, character: string) => escapes[character] ?? character),
    ]),
  )

/** Reads what `wanted` names out of the gateway's own scrape; a name that is not there has no samples. */
export const readExposition = (
  text: string,
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, readonly Sample[]> => {
  const found = new Map<string, Sample[]>([...wanted].map((name) => [name, []]))
  for (const line of text.split('\n')) {
    const [, name = '', labels = '', value = ''] = sampleLine.exec(line) ?? []
    found.get(name)?.push({ labels: labelsOf(labels), value: Number(value) })
  }
  return found
}
