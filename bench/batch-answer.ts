/** The response to an item for a user who may edit, some 4 kB: one line of JSON with escaped slashes, as WordPress writes it. */
export function itemResponse(
  origin: string,
  mount: string,
  path: string,
  set: Readonly<Record<string, unknown>>,
): string {
  const [, collection = 'posts', id = '1'] = /\/([a-z-]+)\/(\d+)$/.exec(path.split('?', 1)[0] ?? '') ?? []
  const root = `${origin}${mount}`
  const href = (at: string) => [{ href: `${root}/wp/v2/${at}` }]
  const embeddable = (at: string) => [{ embeddable: true, href: `${root}/wp/v2/${at}` }]
  const item = `${collection}/${id}`
  const text = (raw: string) => ({ raw, rendered: raw, protected: false })
  const paragraph = `<p>${`Leaf, stem and root of plant ${id}. `.repeat(12)}</p>`
  const actions = [
    'publish',
    'unfiltered-html',
    'sticky',
    'assign-author',
    'create-categories',
    'assign-categories',
  ]
  const response = {
    id: Number(id),
    date: '2026-03-01T08:00:00',
    date_gmt: '2026-03-01T08:00:00',
    guid: text(`${origin}/?p=${id}`),
    modified: new Date().toISOString().slice(0, 19),
    modified_gmt: new Date().toISOString().slice(0, 19),
    password: '',
    slug: `plant-of-the-day-${id}`,
    status: 'publish',
    type: 'post',
    link: `${origin}/index.php/plant-of-the-day-${id}/`,
    title: text(`Plant of the day ${id}`),
    content: { ...text(`<!-- wp:paragraph -->\n${paragraph}\n<!-- /wp:paragraph -->`), block_version: 1 },
    excerpt: text(paragraph),
    author: 1,
    featured_media: 0,
    comment_status: 'open',
    ping_status: 'open',
    sticky: false,
    template: '',
    format: 'standard',
    meta: { footnotes: '' },
    categories: [3],
    tags: [9],
    permalink_template: `${origin}/index.php/%postname%/`,
    generated_slug: `plant-of-the-day-${id}`,
    class_list: [
      `post-${id}`,
      'post',
      'type-post',
      'status-publish',
      'format-standard',
      'hentry',
      'category-trees',
    ],
    ...set,
    _links: {
      self: href(item),
      collection: href(collection),
      about: href('types/post'),
      author: embeddable('users/1'),
      replies: embeddable(`comments?post=${id}`),
      'version-history': href(`${item}/revisions`),
      'wp:attachment': href(`media?parent=${id}`),
      'wp:term': [...embeddable(`categories?post=${id}`), ...embeddable(`tags?post=${id}`)],
      ...Object.fromEntries(actions.map((action) => [`wp:action-${action}`, href(item)])),
      curies: [{ name: 'wp', href: 'https://api.w.org/{rel}', templated: true }],
    },
  }
  return JSON.stringify(response).replaceAll('/', '\\/')
}
