type Change = (value: unknown, key: string) => unknown

/** Applies `change` to every value that is no container. */
function changed(value: unknown, key: string, change: Change): unknown {
  if (Array.isArray(value)) return value.map((item) => changed(item, key, change))
  if (typeof value !== 'object' || value === null) return change(value, key)
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, changed(part, name, change)]))
}

const withoutSecret: Change = (value) =>
  typeof value === 'string' ? value.replaceAll(/(data-secret="|#\?secret=)\w+/g, '$1…') : value

/** Content without what differs between any two responses: the secret that each embed code carries. */
export function steadyContent(content: unknown): unknown {
  return changed(content, '', withoutSecret)
}

const isClock = /^(?:modified|date|registered_date)(?:_gmt)?$/
const origin = /https?:(?:\\\/|\/){2}127\.0\.0\.1:\d+/g

/** A broken PHP tells where its files are. */
const folder = /\brun-\d+-\d+/g

/** Times of the day of the test, and the addresses of copies of one site. */
const withoutTimeAndPlace: Change = (value, key) => {
  if (typeof value !== 'string') return value
  if (isClock.test(key) && value.startsWith(String(new Date().getFullYear()))) return 'now'
  return value.replaceAll(origin, 'http://site').replaceAll(folder, 'run')
}

/** The same for responses of copies of one site: without times of now and without the copy's own address. */
export function steadyAfterWrites(content: unknown): unknown {
  return changed(steadyContent(content), '', withoutTimeAndPlace)
}
