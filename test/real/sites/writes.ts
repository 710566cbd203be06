import type { Ids } from './reads.ts'

export type SiteWrite = {
  readonly name: string
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  readonly body: object
}

/** The six writes of an editor's day, to what the newest lists show; `nth` makes each a change. */
export const sixWrites = ({ posts, categories, media }: Ids, nth: number): readonly SiteWrite[] => {
  const put = (name: string, path: string, body: object): SiteWrite => ({ name, method: 'PUT', path, body })
  const post = (name: string, path: string, body: object): SiteWrite => ({ name, method: 'POST', path, body })
  return [
    put('content', `/wp/v2/posts/${posts.at(-3)}`, { content: `<p>Rewritten ${nth}</p>` }),
    put('title', `/wp/v2/posts/${posts.at(-4)}`, { title: `Retitled ${nth}` }),
    post('new post', '/wp/v2/posts', {
      ...{ title: `New ${nth}`, status: 'publish', content: '<p>New.</p>' },
      categories: [categories.at(2)],
    }),
    put('category', `/wp/v2/categories/${categories.at(2)}`, { description: `Described ${nth}` }),
    put('alt text', `/wp/v2/media/${media.at(0)}`, { alt_text: `Shown ${nth}` }),
    post('comment', '/wp/v2/comments', { post: posts.at(20), content: `Said ${nth}` }),
  ]
}
