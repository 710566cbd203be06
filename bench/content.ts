/** A list of posts as a site answers it, close to 2 kB. */
export const listContent = JSON.stringify(
  Array.from({ length: 8 }, (_, index) => ({
    id: 1000 + index,
    date: `2026-03-0${index + 1}T08:00:00`,
    slug: `plant-of-the-day-${index}`,
    status: 'publish',
    title: { rendered: `Plant of the day ${index}` },
    excerpt: { rendered: `<p>${'Leaf, stem and root. '.repeat(4)}</p>` },
  })),
)

/** The discovery document of the stand-in origin: no routes of its own. */
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
