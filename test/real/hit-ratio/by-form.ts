import type { Browser } from '../companion/site.ts'
import type { MixedWrite } from './mix.ts'

/** What the scripts of the block editor add to its form, for a post that is open for comments: the author stays. */
const openPost = { action: 'editpost', comment_status: 'open', ping_status: 'open' }

const headersOf = ({ kind, body }: MixedWrite, author: string): Record<string, string> => {
  const { title, content, categories } = body as {
    readonly title?: string
    readonly content?: string
    readonly categories?: readonly number[]
  }
  return {
    ...openPost,
    post_author: author,
    ...(title === undefined ? {} : { post_title: title }),
    ...(content === undefined ? {} : { content }),
    ...(categories === undefined ? {} : { 'post_category[]': String(categories[0]) }),
    ...(kind === 'new post' ? { publish: 'Publish', post_status: 'publish' } : {}),
  }
}

/** The author of a post or page as the REST interface shows it; '' for a new one, which WordPress gives to its user. */
const authorOf = async (browser: Browser, path: string): Promise<string> => {
  if (!/\d$/.test(path)) return ''
  const shown = await browser.get(`/index.php/wp-json/wp/v2/${path}?_fields=author`)
  const { author } = JSON.parse(shown) as { readonly author: number }
  return String(author)
}

/** Makes a draft and returns its id. */
const beginPost = async (browser: Browser): Promise<string> => {
  const page = await browser.get('/wp-admin/post-new.php')
  const [, id] = /name=['"]post_ID['"] value=['"](\d+)/.exec(page) ?? []
  if (id === undefined) throw new Error('wp-admin begins no post')
  return id
}

/** Makes a write of the mix with the forms of wp-admin instead of REST. */
export const sendByForm = async (browser: Browser, write: MixedWrite): Promise<void> => {
  const { kind, path, body } = write
  const submit = async (page: string, having: string, headers: Record<string, string>): Promise<void> => {
    const response = await browser.submit(page, having, headers)
    await response.arrayBuffer()
    if (response.status !== 302) throw new Error(`${kind}: ${page} answered ${response.status}`)
  }
  if (kind === 'comment') {
    const { content } = body as { readonly content: string }
    const page = await browser.get('/wp-admin/edit-comments.php')
    const [, id] = /comment\.php\?action=editcomment&(?:amp;|#038;)?c=(\d+)/.exec(page) ?? []
    if (id === undefined) throw new Error('wp-admin shows no comment')
    return submit(`/wp-admin/comment.php?action=editcomment&c=${id}`, 'editedcomment', { content })
  }
  const id = /\d+$/.exec(path)?.[0] ?? (await beginPost(browser))
  const author = await authorOf(browser, path)
  return submit(`/wp-admin/post.php?post=${id}&action=edit`, 'post_ID', headersOf(write, author))
}
