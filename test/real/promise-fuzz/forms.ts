import { content, oneOf, text } from './contents.ts'
import type { Pools } from './pools.ts'
import type { Random } from './random.ts'
import type { HeaderValues, Sending } from './write.ts'

type Make = (pools: Pools, random: Random) => Sending

const post = (path: string, headers: HeaderValues, nonces?: HeaderValues): Sending => ({
  door: 'form',
  method: 'POST',
  path,
  headers,
  ...(nonces === undefined ? {} : { nonces }),
})

const ajax = (action: string, headers: HeaderValues, nonces?: HeaderValues): Sending =>
  post('/wp-admin/admin-ajax.php', { action, ...headers }, nonces)

const link = (path: string, headers: HeaderValues, nonces: HeaderValues): Sending => ({
  door: 'form',
  method: 'GET',
  path,
  headers,
  nonces,
})

const postOrPage = (pools: Pools, random: Random): { id: string; type: string } =>
  random.chance(0.7)
    ? { id: oneOf(pools, 'posts', random), type: 'post' }
    : { id: oneOf(pools, 'pages', random), type: 'page' }

const term = (pools: Pools, random: Random): { id: string; taxonomy: string } =>
  random.chance(0.5)
    ? { id: oneOf(pools, 'categories', random), taxonomy: 'category' }
    : { id: oneOf(pools, 'tags', random), taxonomy: 'post_tag' }

const numbered = (random: Random): string => `${text(random)} ${random.int(1000)}`

/** What wp-admin, a theme's comment form and other programs send, by the name of the write. */
export const forms: Readonly<Record<string, Make>> = {
  'form.edit-post': (pools, random) => {
    const { id, type } = postOrPage(pools, random)
    return post(
      '/wp-admin/post.php',
      {
        action: 'editpost',
        originalaction: 'editpost',
        post_ID: id,
        post_type: type,
        user_ID: '1',
        post_title: text(random),
        content: content(pools, random),
        post_status: random.pick(['publish', 'publish', 'draft']),
        ...(type === 'post' ? { 'post_category[]': oneOf(pools, 'categories', random) } : {}),
      },
      { _wpnonce: `update-post_${id}` },
    )
  },
  'form.trash-post': (pools, random) => {
    const { id } = postOrPage(pools, random)
    const action = random.pick(['trash', 'untrash', 'delete'])
    return link('/wp-admin/post.php', { action, post: id }, { _wpnonce: `${action}-post_${id}` })
  },
  'form.edit-term': (pools, random) => {
    const { id, taxonomy } = term(pools, random)
    return post(
      '/wp-admin/edit-tags.php',
      {
        action: 'editedtag',
        tag_ID: id,
        taxonomy,
        name: numbered(random),
        slug: '',
        description: text(random),
      },
      { _wpnonce: `update-tag_${id}` },
    )
  },
  'form.delete-term': (pools, random) => {
    const { id, taxonomy } = term(pools, random)
    return link(
      '/wp-admin/edit-tags.php',
      { action: 'delete', tag_ID: id, taxonomy },
      { _wpnonce: `delete-tag_${id}` },
    )
  },
  'form.settings': (pools, random) =>
    random.chance(0.5)
      ? post(
          '/wp-admin/options.php',
          {
            option_page: 'general',
            action: 'update',
            blogname: text(random),
            blogdescription: text(random),
            timezone_string: 'UTC',
            date_format: 'F j, Y',
            time_format: 'g:i a',
            start_of_week: '1',
            WPLANG: '',
            new_admin_email: 'admin@example.org',
            default_role: 'subscriber',
          },
          { _wpnonce: 'general-options' },
        )
      : post(
          '/wp-admin/options.php',
          {
            option_page: 'reading',
            action: 'update',
            posts_per_page: String(3 + random.int(8)),
            posts_per_rss: '10',
            rss_use_excerpt: '0',
            show_on_front: 'page',
            page_on_front: oneOf(pools, 'pages', random),
            page_for_posts: '0',
            blog_public: '1',
          },
          { _wpnonce: 'reading-options' },
        ),
  'form.comment-status': (pools, random) => {
    const id = oneOf(pools, 'comments', random)
    const [action, nonce] = random.pick([
      ['approvecomment', 'approve-comment'],
      ['unapprovecomment', 'approve-comment'],
      ['spamcomment', 'delete-comment'],
      ['trashcomment', 'delete-comment'],
    ] as const)
    return link('/wp-admin/comment.php', { action, c: id }, { _wpnonce: `${nonce}_${id}` })
  },
  'form.comment': (pools, random) =>
    post('/wp-comments-post.php', {
      comment_post_ID: oneOf(pools, 'posts', random),
      comment: `${text(random)} ${random.int(100_000)}`,
      comment_parent: '0',
    }),
  'ajax.inline-save': (pools, random) => {
    const { id, type } = postOrPage(pools, random)
    return ajax(
      'inline-save',
      {
        post_ID: id,
        post_type: type,
        post_title: text(random),
        post_name: '',
        mm: '03',
        jj: '04',
        aa: '2025',
        hh: '10',
        mn: '00',
        ss: '00',
        _status: random.pick(['publish', 'draft']),
        post_view: 'list',
        screen: `edit-${type}`,
        comment_status: 'open',
        ...(type === 'post' ? { 'post_category[]': oneOf(pools, 'categories', random) } : {}),
      },
      { _inline_edit: 'inlineeditnonce' },
    )
  },
  'ajax.inline-save-tax': (pools, random) => {
    const { id, taxonomy } = term(pools, random)
    const headers = { tax_ID: id, taxonomy, name: numbered(random), slug: '', post_type: 'post' }
    return ajax('inline-save-tax', headers, { _inline_edit: 'taxinlineeditnonce' })
  },
  'ajax.add-tag': (_, random) => {
    const taxonomy = random.pick(['category', 'post_tag'])
    return ajax(
      'add-tag',
      {
        taxonomy,
        screen: `edit-${taxonomy}`,
        post_type: 'post',
        'tag-name': numbered(random),
        slug: '',
        parent: '-1',
      },
      { '_wpnonce_add-tag': 'add-tag' },
    )
  },
  'ajax.delete-tag': (pools, random) => {
    const { id, taxonomy } = term(pools, random)
    return ajax('delete-tag', { tag_ID: id, taxonomy }, { _wpnonce: `delete-tag_${id}` })
  },
  'ajax.dim-comment': (pools, random) => {
    const id = oneOf(pools, 'comments', random)
    return ajax('dim-comment', { id, dimClass: 'unapproved' }, { _ajax_nonce: `approve-comment_${id}` })
  },
  'ajax.trash-post': (pools, random) => {
    const id = oneOf(pools, 'posts', random)
    const action = random.pick(['trash-post', 'untrash-post'])
    return ajax(action, { id }, { _ajax_nonce: `${action}_${id}` })
  },
  'xmlrpc.edit-post': (pools, random) => ({
    door: 'xmlrpc',
    call: 'wp.editPost',
    values: [
      oneOf(pools, 'posts', random),
      {
        post_title: text(random),
        post_content: content(pools, random),
        post_status: random.pick(['publish', 'draft']),
      },
    ],
  }),
  'xmlrpc.new-post': (pools, random) => ({
    door: 'xmlrpc',
    call: 'wp.newPost',
    values: [
      {
        post_title: text(random),
        post_content: content(pools, random),
        post_status: 'publish',
        terms: { category: [oneOf(pools, 'categories', random)] },
      },
    ],
  }),
  'xmlrpc.delete-post': (pools, random) => ({
    door: 'xmlrpc',
    call: 'wp.deletePost',
    values: [oneOf(pools, 'posts', random)],
  }),
  'xmlrpc.edit-term': (pools, random) => ({
    door: 'xmlrpc',
    call: 'wp.editTerm',
    values: [oneOf(pools, 'tags', random), { taxonomy: 'post_tag', name: numbered(random) }],
  }),
  'xmlrpc.options': (_, random) => ({
    door: 'xmlrpc',
    call: 'wp.setOptions',
    values: [{ blog_title: text(random) }],
  }),
}
