/** Scripts that get the rest of a path as PATH_INFO. */
const script = /\.(?:php\d?|phtml|cgi|pl|py)(?=\/)/g

/** Without these, servers differ at most in case and in the slash at the end. */
const severalReadings = /[^\w\-~!$&'()*+,=:@./]|\/\/|\.(?:\/|$)|\.(?:php\d?|phtml|cgi|pl|py)\//i

/** In ASCII, where servers have one reading: what `trimmed` changes. */
const untrimmed = /[A-Z.]|\/(?:\/|$)/

/** A path as a matcher compares it: merged slashes, none at the end, no dots or spaces at the end of a segment, in lower case. */
const trimmed = (path: string): string => {
  const text = path
    .replace(/(?<![ .])[ .]+(?=\/|$)/g, '')
    .replace(/\/{2,}/g, '/')
    .toLowerCase()
  return text.length > 1 && text.endsWith('/') ? text.slice(0, -1) : text
}

/** All escapes undone but those of slashes. Text that is not UTF-8 stays as it is: it has no other reading. */
const decodedButSlashes = (path: string): string => {
  try {
    return path
      .split(/%2f/i)
      .map((part) => decodeURIComponent(part))
      .join('%2f')
  } catch {
    return path
  }
}

const withSlashes = (path: string): string => path.replaceAll('%2f', '/')
const withoutParameters = (path: string): string => path.replace(/;[^/]*/g, '')

/** The path, and what remains of it where a script takes what follows its name. */
const withScripts = (path: string): readonly string[] => {
  const ends = [...path.matchAll(script)].map(({ index, 0: { length } }) => index + length)
  const [first, last] = [ends[0], ends.at(-1)]
  return first === undefined ? [path] : [path, path.slice(0, first), path.slice(0, last)]
}

const both = (paths: readonly string[], other: (path: string) => string): readonly string[] => [
  ...paths,
  ...paths.map(other),
]

/**
 * The forms in which servers may read a path, for comparisons with paths in `folded` form: some ignore case, merge slashes, cut `;params`,
 * take `%2F` for a slash, ignore dots and spaces at the end of a segment, or give a script what follows its name. At most twelve.
 */
export const pathReadings = (path: string): readonly string[] => {
  if (!severalReadings.test(path)) return [untrimmed.test(path) ? trimmed(path) : path]
  const decoded = decodedButSlashes(path)
  const readings = both(both([decoded], withSlashes), withoutParameters).map(trimmed)
  return [...new Set(readings.flatMap(withScripts))]
}

/** The path or pattern with which the readings of a path are compared. */
export const folded = (path: string): string =>
  trimmed(withoutParameters(withSlashes(decodedButSlashes(path))))
