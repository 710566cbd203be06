const item = (index: number) => ({
  id: 1000 + index,
  date: `2026-03-0${(index % 9) + 1}T08:00:00`,
  slug: `plant-of-the-day-${index}`,
  status: 'publish',
  title: { rendered: `Plant of the day ${index}` },
  excerpt: { rendered: `<p>${'Leaf, stem and root. '.repeat(4)}</p>` },
})

const list = (length: number): string => JSON.stringify(Array.from({ length }, (_, index) => item(index)))

/** A list of posts as a site answers it, close to 2 kB. */
const listContent = list(8)

/** Lists by the ending of their target; what no ending names is the first. */
export const contents: readonly { readonly ending: string; readonly tag: string; readonly text: string }[] = [
  { ending: '', tag: '"bench-2k"', text: listContent },
  { ending: '/20k', tag: '"bench-20k"', text: list(80) },
  { ending: '/192k', tag: '"bench-192k"', text: list(768) },
]

/** The discovery document of the origin: no routes. */
export const indexContent = JSON.stringify({
  name: 'Bench',
  description: '',
  url: 'http://127.0.0.1',
  home: 'http://127.0.0.1',
  gmt_offset: '0',
  timezone_string: '',
  namespaces: [],
  authentication: {},
  routes: {},
})
