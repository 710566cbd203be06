import { type Call, contextOf, ok, type Resource } from './call.ts'
import { permalinkOf } from './content-rendering.ts'
import type { Comment, User } from './entry.ts'
import { selfLink } from './links.ts'
import { cutPage } from './paging.ts'
import { denied, SiteFault } from './site-fault.ts'
import { integer, integers, siteDate, text } from './values.ts'

const avatar = {
  24: 'https://avatars.invalid/24',
  48: 'https://avatars.invalid/48',
  96: 'https://avatars.invalid/96',
}

const privateFields = (user: User): Record<string, unknown> => ({
  username: user.slug,
  first_name: '',
  last_name: '',
  email: `${user.slug}@example.org`,
  locale: 'en_US',
  nickname: user.slug,
  roles: [user.role],
  registered_date: '2025-01-01T00:00:00+00:00',
  capabilities: { read: true, [user.role]: true },
  extra_capabilities: { [user.role]: true },
})

const renderUser = (call: Call, user: User): Record<string, unknown> => {
  const { site } = call
  const base = `${site.root}/${site.names.content}/users`
  const context = contextOf(call)
  const shown = {
    id: user.id,
    name: user.name,
    url: user.id === 1 ? site.home : '',
    description: '',
    link: `${site.home}/index.php/author/${user.slug}/`,
    slug: user.slug,
    avatar_urls: avatar,
  }
  return {
    ...shown,
    ...(context === 'edit' ? privateFields(user) : {}),
    ...(context === 'embed' ? {} : { meta: context === 'edit' ? { persisted_preferences: [] } : [] }),
    _links: { ...selfLink(call.caller, `${base}/${user.id}`), collection: [{ href: base }] },
  }
}

/** An author shows in public only with a published post. */
const hasPublished = (call: Call, user: User): boolean =>
  call.site.store.ofType('post').some((entry) => entry.author === user.id && entry.status === 'publish')

const mayList = (call: Call): void => {
  if (call.caller.role !== 'admin' && contextOf(call) === 'edit') {
    throw denied(call.caller, 'rest_forbidden_context', 'Sorry, you are not allowed to edit users.')
  }
}

/** The authors. */
export const usersResource: Resource = {
  permit: mayList,
  run: (call) => {
    const included = integers(call.args, 'include')
    const search = text(call.args, 'search')?.toLowerCase() ?? ''
    const users = [...call.site.store.users.values()]
      .filter((user) => call.caller.role === 'admin' || hasPublished(call, user))
      .filter((user) => included.length === 0 || included.includes(user.id))
      .filter((user) => user.name.toLowerCase().includes(search))
      .sort((a, b) => a.name.localeCompare(b.name))
    const page = cutPage(call, `/${call.site.names.content}/users`, users, undefined)
    return ok(
      page.items.map((user) => renderUser(call, user)),
      page.headers,
    )
  },
}

/** One author. */
export const userResource: Resource = {
  permit: (call) => {
    const user = call.site.store.users.get(integer(call.args, 'id') ?? 0)
    if (user === undefined) throw new SiteFault(404, 'rest_user_invalid_id', 'Invalid user ID.')
    const self = user.id === call.caller.userId
    if (call.caller.role === 'admin' || self) return
    mayList(call)
    if (hasPublished(call, user)) return
    throw denied(call.caller, 'rest_user_cannot_view', 'Sorry, you are not allowed to list users.')
  },
  run: (call) => ok(renderUser(call, call.site.store.users.get(integer(call.args, 'id') ?? 0) as User)),
}

/** The caller: the probe for a valid credential. */
export const meResource: Resource = {
  permit: () => undefined,
  run: (call) => {
    const user = call.site.store.users.get(call.caller.userId)
    if (user === undefined) throw new SiteFault(401, 'rest_not_logged_in', 'You are not currently logged in.')
    return ok(renderUser(call, user))
  },
}

const renderComment = (call: Call, comment: Comment): Record<string, unknown> => {
  const { site } = call
  const base = `${site.root}/${site.names.content}`
  const post = site.store.get(comment.post)
  const short = contextOf(call) === 'embed'
  return {
    id: comment.id,
    ...(short ? {} : { post: comment.post }),
    parent: 0,
    author: 0,
    author_name: comment.authorName,
    author_url: '',
    date: siteDate(comment.date),
    ...(short ? {} : { date_gmt: siteDate(comment.date) }),
    content: { rendered: `<p>${comment.text}</p>\n` },
    link: `${post === undefined ? site.home : permalinkOf(site, post)}#comment-${comment.id}`,
    ...(short ? {} : { status: 'approved' }),
    type: 'comment',
    author_avatar_urls: avatar,
    ...(short ? {} : { meta: [] }),
    _links: {
      ...selfLink(call.caller, `${base}/comments/${comment.id}`),
      collection: [{ href: `${base}/comments` }],
      up: [{ embeddable: true, post_type: 'post', href: `${base}/posts/${comment.post}` }],
    },
  }
}

/** Comments, the list and one; read only. */
export const commentsResource: Resource = {
  permit: (call) => {
    const id = integer(call.path, 'id')
    if (id !== undefined && !call.site.store.comments.has(id)) {
      throw new SiteFault(404, 'rest_comment_invalid_id', 'Invalid comment ID.')
    }
    const hidden = integers(call.args, 'post').some((post) => call.site.store.get(post)?.status !== 'publish')
    if (hidden && call.caller.role !== 'admin') {
      throw denied(
        call.caller,
        'rest_cannot_read_post',
        'Sorry, you are not allowed to read the post for this comment.',
      )
    }
  },
  run: (call) => {
    const one = call.site.store.comments.get(integer(call.path, 'id') ?? 0)
    if (one !== undefined) return ok(renderComment(call, one))
    const posts = integers(call.args, 'post')
    const all = [...call.site.store.comments.values()]
      .filter((comment) => posts.length === 0 || posts.includes(comment.post))
      .sort((a, b) => b.date - a.date || b.id - a.id)
    const page = cutPage(call, `/${call.site.names.content}/comments`, all, undefined)
    return ok(
      page.items.map((comment) => renderComment(call, comment)),
      page.headers,
    )
  },
}
